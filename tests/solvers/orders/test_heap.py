"""The heap of values: the least comes first, whatever was put in, changed and taken out before."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from solvers._loops import least_first


@pytest.mark.parametrize("seed", range(5))
def test_the_least_comes_first(seed: int) -> None:
    random, values = Random(seed), 30
    there: dict[int, int] = {}
    changes, firsts = [], []
    for _ in range(2000):
        value = random.randrange(values)
        key = random.choice((-1, random.randrange(12))) if value in there else random.randrange(12)
        if key >= 0:
            there[value] = key
        else:
            del there[value]
        changes.append((value, key))
        firsts.append(min(there, key=lambda item: (there[item], item), default=-1))
    which, keys = zip(*changes, strict=True)
    assert least_first(values, np.array(which), np.array(keys, np.float64)).tolist() == firsts
