"""Reordering: legal, never worse over the budget, and with a way back."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from solvers._loops import annealed
from solvers.annealing.cooling import Cooling, Kept
from solvers.annealing.local import NO_ROOF
from solvers.annealing.reordering import reorder
from solvers.faults import faults
from solvers.orders.arrays import arrays_of
from solvers.plan import IllegalOrder
from solvers.problem import Node, Problem
from solvers.reductions.views import reduced
from solvers.schedule import baseline, evaluate
from tests.solvers.viewed_problems import random_order, random_problem


@pytest.mark.parametrize("seed", range(60))
def test_any_problem_comes_back_legal_and_no_worse(seed: int) -> None:
    problem = reduced(random_problem(seed, count=10)).problem
    plain = baseline(problem)[1]
    budget = plain.peak * 3 // 4
    found = reorder(problem, budget, seed)
    assert not list(faults(found.problem))
    order = random_order(found.problem, seed)
    _, inside = evaluate(found.problem, order)
    _, outside = evaluate(problem, found.expand(order))
    assert (inside.cost, inside.peak) == (outside.cost, outside.peak)
    assert found.shrink(found.expand(order)) == order
    over = sum(max(0, used - budget) for used in baseline(found.problem)[1].memory)
    assert over <= sum(max(0, used - budget) for used in plain.memory)


def _peaks(problem: Problem) -> list[int]:
    """Of every order, as annealing counts them: never too low."""
    arrays, peaks = arrays_of(problem.ended()), []
    for order in permutations(range(len(problem.nodes))):
        try:
            evaluate(problem, order)
        except IllegalOrder:
            continue
        still = Cooling(0, 1.0, 1, 1.0, 1.0)
        held = annealed(arrays, np.array([*order, len(order)]), 0, NO_ROOF, still, Kept.NOTHING)[1]
        peaks.append(problem.resident + int(held.max()))
    return peaks


@pytest.mark.parametrize("seed", range(25))
def test_small_graphs_reach_the_least_peak_of_any_order(seed: int) -> None:
    problem = reduced(random_problem(seed, count=6)).problem
    least = min(_peaks(problem))
    assert baseline(reorder(problem, least).problem)[1].peak <= least


def test_branches_computed_one_after_the_other_need_less() -> None:
    """Four wide branches, each shrinking at once: written breadth first they need all, depth first only one."""
    wide = [Node(1, (), (branch,)) for branch in range(4)]
    small = [Node(1, (branch,), (4 + branch,)) for branch in range(4)]
    problem = Problem((*wide, *small), (100,) * 4 + (1,) * 4, (4, 5, 6, 7))
    assert baseline(problem)[1].peak == 401
    assert baseline(reorder(problem, 110).problem)[1].peak == 104
