"""Which cases of a large table run in every test run, and which in the slow one alone.

Invariant: no case is lost, as those that are left out here are marked slow; which are is the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

SLOW = pytest.mark.slow


def few(values: Iterable[Any], count: int, several: bool = False) -> list[Any]:
    """All of the values, of which only so many are not slow, spread evenly. `several`: each is of several arguments."""
    every = list(values)
    kept = {len(every) * place // count for place in range(count)}
    return [value if place in kept else _slow(value, several) for place, value in enumerate(every)]


def pairwise(first: Sequence[Any], second: Sequence[Any], third: Sequence[Any]) -> Iterator[ParameterSet]:
    """Every combination of the three; those that are not slow have each pair of values at least once.

    The third has to have no more values than the second.
    """
    for place, one in enumerate(first):
        for other, two in enumerate(second):
            for turn, three in enumerate(third):
                wanted = turn == (place + other) % len(third)
                yield pytest.param(one, two, three, marks=() if wanted else SLOW, id=f"{one}-{two}-{three}")


def _slow(value: Any, several: bool) -> ParameterSet:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, SLOW], id=value.id)
    return pytest.param(*(value if several else (value,)), marks=SLOW)
