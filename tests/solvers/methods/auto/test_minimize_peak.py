"""Least peaks against the oracle, and against a network where counting op by op is not enough."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest

from solvers.clock import limited
from solvers.methods.auto.minimize_peak import minimize_peak
from solvers.methods.exact.low_walks import lowest
from solvers.orders.bounds import peak_bound
from solvers.pebbles.floor import prove
from solvers.plan import lower
from solvers.problem import Limits, Node, Problem, Status
from solvers.simulate import simulate
from tests.ample import ample
from tests.solvers.oracle import least_peak
from tests.solvers.random_problems import random_problem
from tests.solvers.test_oracle import unit_chain


@pytest.mark.slow
def test_the_least_peak_lies_between_the_bound_and_the_schedule() -> None:
    random = Random(21)
    met = 0
    for _ in range(60):
        problem = random_problem(random, random.randint(1, 7))
        least = least_peak(problem)
        result = minimize_peak(problem, 1 << 40, Limits(ample(20_000)))
        assert result.order is not None
        assert result.peak_bound is not None
        peak = simulate(problem, lower(problem, result.order)).peak
        assert result.peak_bound <= least <= peak
        met += result.status is Status.OPTIMAL
        if result.status is Status.OPTIMAL:
            assert peak == least
    assert met > 20


def test_what_must_be_held_while_something_is_rebuilt_counts() -> None:
    """The last op reads two values, either of which takes 6 to make: one is held meanwhile."""
    nodes = (Node(1, (), (0,)), Node(1, (0,), (1,)), Node(1, (), (2,)), Node(1, (2,), (3,)), Node(1, (1, 3), (4,)))
    problem = Problem(nodes, (5, 1, 5, 1, 1), (4,))
    assert peak_bound(problem).peak == 6
    assert prove(problem, 100, Limits()).peak == 7 == least_peak(problem)


def test_a_price_limits_the_least_peak() -> None:
    problem = unit_chain(8)
    result = minimize_peak(problem, 1 << 40, Limits(ample()), max_overhead=0.3)
    assert result.order is not None
    outcome = simulate(problem, lower(problem, result.order))
    assert outcome.cost <= 17 * 1.3
    assert outcome.peak == 5  # 22 at 5, 26 at 4: the optima that came with the instance
    assert result.peak_bound is not None
    assert result.peak_bound <= 4  # a schedule that costs more holds less: 5 is no bound of every schedule


def test_little_time_gets_most_of_the_way() -> None:
    """Walks that aim too low give up, after a long time: 20 of them had come no lower than no recomputation."""
    looked = count(1)
    best = lowest(unit_chain(100), Limits(ample(stopped=lambda: next(looked) > 20)))
    assert best.leanest is not None
    assert best.leanest.peak <= 8


def test_impatient_walks_end_where_none_meets_its_aim() -> None:
    """Aiming lower still takes most of the work."""
    chain, most = unit_chain(100), 1_000_000
    clocks = limited(moves=most), limited(moves=most)
    patient = lowest(chain, Limits(clocks[0])).leanest
    soon = lowest(chain, Limits(clocks[1]), patient=False).leanest
    assert patient is not None
    assert soon is not None
    assert patient.peak <= soon.peak < 40
    assert clocks[1].work.spent < clocks[0].work.spent / 2


def test_walks_end_at_a_peak_that_is_enough() -> None:
    chain = unit_chain(100)
    least, enough = (lowest(chain, Limits(limited(moves=100_000)), enough=enough).leanest for enough in (0, 40))
    assert least is not None
    assert enough is not None
    assert least.peak < enough.peak <= 40
