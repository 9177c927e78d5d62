"""The clock that everything shares, with time as the test says it is."""

from __future__ import annotations

from pathlib import Path
from random import Random
from time import sleep

import numpy as np
import pytest

from remat_cli.formats import problemfile
from solvers import clock, scip
from solvers.clock import STATE_MOVES, Clock, limited
from solvers.methods.auto.minimize_peak import minimize_peak
from solvers.methods.exact.low_walks import lowest
from solvers.methods.exact.small import Small
from solvers.orders.arrays import arrays_of
from solvers.orders.best import Best
from solvers.orders.halting import _POLL, halting
from solvers.orders.measure import measure
from solvers.pebbles.floor import dig
from solvers.placement.lifetimes import ALIGNMENT
from solvers.placement.lives import Lives
from solvers.placement.packing import pack
from solvers.problem import Limits, Result, Status
from solvers.reductions.views import reduced
from tests.solvers.random_problems import random_problem
from tests.solvers.test_scip import knapsacks

NETWORKS = Path(__file__).parents[1] / "data" / "networks"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: time[0])
    return time


def begun(seconds: float, at: float = 100.0) -> Clock:
    return Clock(seconds, begun=at)


def test_it_runs_out(now: list[float]) -> None:
    whole = begun(10)
    now[0] += 4
    assert (whole.elapsed(), whole.left(), whole.over()) == (4, 6, False)
    now[0] += 7
    assert (whole.left(), whole.over()) == (0, True)


def test_what_overran_leaves_others_their_part(now: list[float]) -> None:
    whole = begun(10)
    now[0] += 2
    assert whole.at_least(0.7) is whole
    now[0] += 7
    late = whole.at_least(0.7)
    assert (whole.left(), late.left()) == (1, 7)


def test_no_clock_made_from_another_ends_later(now: list[float]) -> None:
    whole = begun(10)
    now[0] += 4
    assert whole.share(0.5).seconds == 3
    assert whole.within(100).seconds == 6
    now[0] += 10
    assert whole.within(5).over()


def test_all_hear_the_same_stop() -> None:
    heard = [False, False]
    whole = Clock(10, lambda: heard[0])
    parts = [whole.share(0.5), whole.within(3), whole.unless(lambda: heard[1])]
    assert not any(part.over() for part in parts)
    heard[1] = True
    assert [part.over() for part in parts] == [False, False, True]
    heard[0] = True
    assert all(part.over() for part in [whole, *parts])


def test_work_that_is_allotted_counts_as_done_however_much_is_done() -> None:
    whole = limited(moves=100)
    first = whole.allot(0.5)
    first.spend(moves=1000)
    second = whole.allot(0.5)
    assert (first.over(), second.over(), second.most, whole.over()) == (True, False, 25, False)
    assert not whole.allot(1).over()
    assert whole.over()


def test_a_part_has_the_least_work_that_it_is_promised_or_all_of_the_limit() -> None:
    whole = limited(moves=100)
    whole.spend(moves=90)
    assert (whole.allot(0.5, 40).most, whole.allot(0.5, 400).most) == (40, 100)


def test_work_that_is_used_up_lets_no_step_begin_and_ends_none() -> None:
    worn = limited(moves=10)
    worn.spend(moves=10)
    assert (worn.over(), worn.interrupts()) == (True, False)
    with halting(worn) as flag:
        sleep(3 * _POLL)
        assert flag[0] == 0
    answer = scip.Solving(knapsacks(), scip.Settings(clock=worn)).wait()
    assert answer.status is Status.OPTIMAL


def test_placement_counts_its_work() -> None:
    random, clock = np.random.default_rng(1), limited(moves=1 << 40)
    start, spent = np.arange(1000), []
    lives = Lives(start, start + random.integers(1, 200, 1000), random.integers(1, 99, 1000) * ALIGNMENT)
    for effort in (0, 1):
        before = clock.work.spent
        pack(lives, clock=clock, effort=effort)
        spent.append(clock.work.spent - before)
    assert 0 < spent[0] < spent[1]


def test_searches_for_a_proof_count_their_work() -> None:
    problem, clock = random_problem(Random(3), 10), limited(moves=1 << 40)
    budget = measure(arrays_of(problem), range(len(problem.nodes)))[1]
    Small(problem, budget, Best(problem, budget, Limits(clock)), clock, ordered=False).run()
    assert clock.work.spent > 0
    before = clock.work.spent
    lowest(problem, Limits(clock))
    assert clock.work.spent > before


def test_one_search_for_the_least_peak_keeps_to_the_work_that_is_left() -> None:
    """The last round of searches alone could look at a hundred thousand sets."""
    problem = reduced(problemfile.read(NETWORKS / "unet.problem.json").problem).problem
    for moves in (1_000, 10_000, 100_000):
        clock = limited(moves=moves)
        dig(Best(problem, -1, Limits(clock)), 1 << 62, Limits(clock))
        assert clock.work.spent <= moves + STATE_MOVES


@pytest.mark.parametrize("moves", [200_000, 2_000_000])
def test_the_least_peak_within_a_limit_of_work_is_found_alike(moves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether SCIP ends soon or late after the last of the work is used up."""
    problem = reduced(problemfile.read(NETWORKS / "unet.problem.json").problem).problem

    def searched() -> tuple[Result, int]:
        clock = limited(moves=moves)
        found = minimize_peak(problem, 1 << 40, Limits(clock))
        return found, clock.work.spent

    def wait_late(solving: scip.Solving) -> scip.ProgramAnswer:
        sleep(0.05)
        return wait(solving)

    wait = scip.Solving.wait
    soon = searched()
    monkeypatch.setattr(scip.Solving, "wait", wait_late)
    assert searched() == soon


def test_enough_lets_no_step_begin_and_interrupts_none_where_work_is_limited() -> None:
    """How far a step had come would be chance."""
    counted, timed = limited(moves=10).until(lambda: True), Clock(10.0).until(lambda: True)
    assert counted.over()
    assert not counted.interrupts()
    assert counted.share(0.5).over()
    assert not counted.timed().over()  # what goes on beside hears of it at no moment
    assert timed.interrupts()
