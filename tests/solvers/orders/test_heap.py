"""The heap of values: the least comes first, whatever was put in, changed and taken out before."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from numba import njit

from solvers.orders.arrays import Ints
from solvers.orders.heap import empty_heap, put, take_out


@njit
def _firsts(values: int, which: Ints, keys: Ints) -> Ints:
    """What stands first after each change; a negative key takes the value out."""
    heap = empty_heap(values)
    found = np.full(len(which), -1, np.int64)
    for step, value in enumerate(which):
        if keys[step] >= 0:
            put(heap, value, float(keys[step]))
        elif heap.place[value] >= 0:
            take_out(heap, value)
        if heap.many[0]:
            found[step] = heap.items[0]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_least_comes_first(seed: int) -> None:
    random, values = Random(seed), 30
    changes = [(random.randrange(values), random.choice((-1, random.randrange(12)))) for _ in range(2000)]
    found = _firsts(values, *(np.array(column, np.int64) for column in zip(*changes, strict=True)))
    there: dict[int, int] = {}
    for (value, key), first in zip(changes, found.tolist(), strict=True):
        if key >= 0:
            there[value] = key
        else:
            there.pop(value, None)
        assert first == min(there, key=lambda item: (there[item], item), default=-1)
