"""Binomial checkpointing, against the recurrence it solves and the figures of its paper."""

from __future__ import annotations

from functools import cache

import pytest

from solvers.methods.baselines.griewank import order_of, snapshot_ranges
from solvers.schedule import evaluate
from tests.solvers.methods.baselines.chains import reversed_chain


@cache
def advances(length: int, snapshots: int) -> int:
    """The least number of forward steps to reverse a chain, over all places for the next snapshot."""
    if length <= 1:
        return 0
    if snapshots == 1:
        return length * (length - 1) // 2
    return min(m + advances(length - m, snapshots - 1) + advances(m, snapshots) for m in range(1, length))


def singles(count: int) -> list[list[int]]:
    """A chain whose every op is a link."""
    return [[index] for index in range(count)]


def test_ten_steps_with_three_snapshots() -> None:
    """The start among them: beta(3, 2) = 10, so r = 2 and t = r l - beta(c + 1, r - 1) = 20 - 5."""
    assert advances(10, 3) == 15
    order = order_of(reversed_chain(9), singles(9), 3)
    assert sum(op < 9 for op in order) == 15


@pytest.mark.parametrize("snapshots", range(1, 7))
@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 13, 21, 34])
def test_forward_steps_are_as_few_as_can_be(length: int, snapshots: int) -> None:
    order = order_of(reversed_chain(length), singles(length), snapshots)
    assert sum(op < length for op in order) == advances(length + 1, snapshots)


@pytest.mark.parametrize("snapshots", range(1, 7))
@pytest.mark.parametrize("length", [5, 13, 34, 100])
def test_never_more_snapshots_than_allowed(length: int, snapshots: int) -> None:
    ranges = snapshot_ranges(length, snapshots)
    for op in range(length):
        assert sum(state <= op < end for state, end in ranges.items()) <= snapshots - 1
    problem = reversed_chain(length)
    assert evaluate(problem, order_of(problem, singles(length), snapshots))[1].peak <= snapshots + 3
