"""What ends a search, by what is known so far."""

from __future__ import annotations

import pytest

from solvers.clock import Clock, limited
from solvers.stopping import Gap, Patience, Standing, Time, usual


@pytest.mark.parametrize("cost, bound, near", [(None, 100, False), (101, 100, True), (102, 100, False), (7, 0, False)])
def test_a_gap_is_of_the_bound(cost: int | None, bound: float, near: bool) -> None:
    assert Gap(0.01)(Standing(cost, bound)) is near


@pytest.mark.parametrize(
    "cost, work, won_at, enough",
    [
        (101, 149, 50, False),  # less than the least
        (101, 150, 50, True),
        (101, 399, 200, False),  # less than the best plan took
        (101, 400, 200, True),
        (102, 9999, 200, False),  # not proved to be near
        (None, 9999, 0, False),
    ],
)
def test_patience_is_lost_after_as_much_work_as_the_best_took(
    cost: int | None, work: int, won_at: int, enough: bool
) -> None:
    for order in (None, 100, cost):  # a cheaper order that may have no places is no answer
        assert Patience(0.01, least=100)(Standing(order, 100, cost, work, won_at)) is enough


def test_time_is_the_clocks() -> None:
    assert (Time(limited(moves=0))(Standing(None, 0)), Time(Clock())(Standing(None, 0))) == (True, False)


def test_a_gap_of_nothing_has_endless_patience() -> None:
    assert not any(enough(Standing(101, 100, 101, 1 << 60, 0)) for enough in usual(0.0, Clock()))


def test_work_of_ones_own_counts_for_the_whole() -> None:
    whole = limited(moves=100)
    whole.spend(moves=30)
    own = whole.own()
    own.own().spend(moves=60)
    assert (own.work.spent, whole.work.spent, own.most, own.over()) == (60, 90, 70, False)
    own.spend(moves=10)
    assert own.over()
    assert whole.over()
