"""Orders found with more room and then mended: whole, the same from one seed, within the budget where plans exist."""

from __future__ import annotations

from random import Random

import numpy as np

from solvers.clock import Clock, Work
from solvers.methods.auto.above import FromAbove
from solvers.orders.best import Best
from solvers.orders.bounds import peak_bound
from solvers.pebbles.copies import Copies
from solvers.problem import Limits, Node, Problem
from solvers.schedule import evaluate

MOVES, WALKS = 4_000, 3
LAYERS = 24


def training_chain(random: Random) -> Problem:
    """A chain of layers whose backward reads what its forward wrote."""
    forward = [Node(random.randint(1, 9), (step - 1,) if step else (), (step,)) for step in range(LAYERS)]
    backward = [
        Node(random.randint(1, 9), (LAYERS - 1 + step, LAYERS - 1 - step), (LAYERS + step,)) for step in range(LAYERS)
    ]
    return Problem((*forward, *backward), tuple(random.randint(2, 5) for _ in range(2 * LAYERS)), (2 * LAYERS - 1,))


def orders_within(problem: Problem, budget: int) -> list[list[int]]:
    limits = Limits(Clock(1e9, work=Work(), most=1 << 40))
    best = Best(problem, budget, limits)
    above = FromAbove(problem, best, Copies(problem), MOVES, WALKS)
    return [order.tolist() for order in (*above.orders(), above.descend())]


def test_orders_that_had_more_room_are_mended_to_fit() -> None:
    random = Random(43)
    for _ in range(4):
        problem = training_chain(random)
        budget = peak_bound(problem).peak * 6 // 5
        assert evaluate(problem, range(2 * LAYERS))[1].peak > budget
        found = orders_within(problem, budget)
        assert found == orders_within(problem, budget)
        assert all(len(np.unique(order)) == 2 * LAYERS for order in found)
        assert all(evaluate(problem, order)[1].peak <= budget for order in found)  # without mending a third of them
