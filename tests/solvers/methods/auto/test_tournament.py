"""Tournaments: the same from one seed, legal orders, never worse than their starts, and further than a usual go."""

from __future__ import annotations

from random import Random

import numpy as np

from solvers.clock import Clock, Work
from solvers.methods.auto.local import LocalSearch
from solvers.methods.auto.steps import Steps
from solvers.methods.auto.tournament import Tournament
from solvers.orders.best import Best
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits, Problem
from solvers.schedule import evaluate
from tests.solvers.methods.auto.test_above import LAYERS, training_chain

MOVES = 4_000


def compete(problem: Problem, budget: int, moves: int = MOVES, most: int = 1 << 40) -> tuple[Best, list[list[int]]]:
    limits = Limits(Clock(1e9, work=Work(), most=most))
    best = Best(problem, budget, limits)
    start = np.arange(2 * LAYERS)
    left = Tournament(LocalSearch(problem, budget, 0), best, moves).run([start, start])
    return best, [order.tolist() for order in left]


def test_a_tournament_finds_what_fits_where_the_start_does_not() -> None:
    random = Random(43)
    for _ in range(4):
        problem = training_chain(random)
        budget = peak_bound(problem).peak * 3 // 2
        best, left = compete(problem, budget)
        assert left == compete(problem, budget)[1]
        assert best.fitting is not None
        assert evaluate(problem, left[0])[1].peak <= budget
        costs = [evaluate(problem, order)[1].cost for order in left]
        assert costs == sorted(costs)
        assert costs[0] == best.fitting.cost


def test_a_tournament_ends_with_the_work() -> None:
    problem = training_chain(Random(43))
    best, left = compete(problem, peak_bound(problem).peak * 3 // 2, most=MOVES // 8)
    assert left
    assert best.limits.clock.over()


def test_another_tournament_begins_from_the_same_walks_and_loses_nothing() -> None:
    problem = training_chain(Random(43))
    budget = peak_bound(problem).peak * 4 // 3
    steps = Steps(problem, budget, Limits(Clock(1e9, work=Work(), most=1 << 40)))
    steps.moves = MOVES
    given = range(2 * LAYERS)
    steps.best.offer(given, "test")
    steps.compete([given])
    first, rivals = steps.best.cost, steps.rivals
    assert first is not None
    steps.compete_again([])
    assert steps.rivals is rivals
    assert steps.best.cost is not None
    assert steps.best.cost <= first
    assert steps.tournaments == 2
    assert all(sorted(set(order)) == list(given) for order in steps.starts)
