"""Least peaks held to the oracle's search through all orders, with everything that a problem can say."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from solvers.orders.arrays import arrays_of
from solvers.orders.best import Best
from solvers.orders.halting import halting
from solvers.orders.polish import polish
from solvers.pebbles.floor import Floor, dig, ignored_sizes
from solvers.pebbles.making import Making
from solvers.problem import Limits, Node, Problem
from tests.oracle.exact import least_peak
from tests.oracle.problems import random_problem

ABOVE_ALL = 1 << 62


def small_problems(seed: int, count: int) -> Iterator[Problem]:
    random = Random(seed)
    for _ in range(count):
        yield random_problem(random, random.randint(2, 8), 10)


def test_no_bound_is_above_the_least_peak_of_all_orders() -> None:
    met = missed = 0
    for problem in small_problems(29, 400):
        least = least_peak(problem, any_order=True)
        floor = Floor(problem, ABOVE_ALL, Limits())
        floor.run(nothing_fits(problem))
        assert floor.bound.peak <= least, problem
        best = Best(problem, -1, Limits())
        best.offer(range(len(problem.nodes)), "test")
        bound = dig(best, ABOVE_ALL, Limits())
        assert best.leanest is not None
        assert bound.peak <= least <= best.leanest.peak, problem
        met += bound.peak == best.leanest.peak
        missed += bound.peak < best.leanest.peak
    assert met > missed


def test_what_is_known_to_be_reached_is_no_bound_surpassed() -> None:
    for problem in small_problems(30, 100):
        least = least_peak(problem, any_order=True)
        for known in (least - 1, least, least + 1):
            floor = Floor(problem, known, Limits())
            floor.run(nothing_fits(problem))
            assert floor.bound.peak <= least


def test_values_left_out_of_all_sets_still_leave_a_bound() -> None:
    lower = 0
    for problem in small_problems(33, 200):
        least = least_peak(problem, any_order=True)
        for ignored in sorted({*problem.sizes}):
            best = nothing_fits(problem)
            floor = Floor(problem, ABOVE_ALL, Limits(), ignored)
            floor.run(best)
            assert best.leanest is not None
            assert floor.bound.peak <= least <= best.leanest.peak, (problem, ignored)
            lower += floor.bound.peak < least
    assert lower  # what is left out can be what counts


def test_each_search_leaves_other_values_out_and_the_last_none() -> None:
    nodes = tuple(Node(1, (), (value,)) for value in range(5))
    assert ignored_sizes(Problem(nodes, (6_000, 900, 300, 10, 5), ()), 9_000) == [10, 300, 9, 0]
    assert ignored_sizes(Problem(nodes, (1,) * 5, ()), 5) == [0]


def test_searches_cut_short_still_bound() -> None:
    for problem in small_problems(31, 100):
        least = least_peak(problem, any_order=True)
        floor = Floor(problem, ABOVE_ALL, Limits())
        with halting(None) as halt:
            for states in (1, 2, 3):
                for aim in (0, least - 1, least, least + 1):
                    floor.seek(aim, states, halt)
                    assert floor.bound.peak <= least


def test_a_budget_is_mostly_met_where_it_can_be() -> None:
    met = missed = 0
    for problem in small_problems(32, 200):
        least = least_peak(problem, any_order=True)
        for budget in (least - 1, least):
            best = Best(problem, budget, Limits())
            bound = dig(best, budget + 1, Limits())
            assert bound.peak <= least
            assert best.fitting is None or budget == least
            met += best.fitting is not None
            missed += best.fitting is None and budget == least
    assert met > 3 * missed


def nothing_fits(problem: Problem) -> Best:
    best = Best(problem, -1, Limits())
    best.offer(range(len(problem.nodes)), "test")
    return best


def twice(length: int) -> Problem:
    """A chain of unit values and back again: each step back reads what was written on the way and the step before."""
    ahead = [Node(1, (step - 1,) if step else (), (step,)) for step in range(length)]
    back = [Node(1, (length + step - 1, length - step - 1), (length + step,)) for step in range(length)]
    return Problem((*ahead, *back), (1,) * 2 * length, (2 * length - 1,))


def test_a_long_chain_is_turned_round_in_no_more_than_it_takes() -> None:
    """Three for a compute, and one held meanwhile: however long it is, with everything made again from the start."""
    problem = twice(60)
    best = Best(problem, -1, Limits())
    best.offer(range(len(problem.nodes)), "test")
    bound = dig(best, ABOVE_ALL, Limits())
    assert best.leanest is not None
    assert best.leanest.peak == bound.peak == 3


def test_more_room_makes_computes_needless() -> None:
    problem = twice(30)
    floor = Floor(problem, ABOVE_ALL, Limits())
    floor.run(nothing_fits(problem))
    assert floor.end is not None
    assert floor.end.way is not None
    arrays = arrays_of(problem)
    costs = []
    for budget in (3, 4, 8, 31):
        steps = Making(floor.copies, floor.ways, budget).run(floor.end.way)
        assert steps is not None
        best = Best(problem, budget, Limits())
        found = best.offer(steps, "test")
        assert found is not None
        shorter = best.offer(polish(arrays, found.order, budget, lambda: False), "test")
        assert shorter is not None
        assert shorter.peak <= budget
        assert shorter.cost <= found.cost
        assert len(np.unique(shorter.order)) == len(problem.nodes)
        costs.append(shorter.cost)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 60
