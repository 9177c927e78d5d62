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


def order_within(problem: Problem, budget: int) -> list[int]:
    limits = Limits(Clock(1e9, work=Work(), most=1 << 40))
    best = Best(problem, budget, limits)
    order: list[int] = FromAbove(problem, best, Copies(problem), MOVES, WALKS).descend().tolist()
    return order


def test_orders_that_had_more_room_are_mended_to_fit() -> None:
    random = Random(43)
    for _ in range(4):
        problem = training_chain(random)
        budget = peak_bound(problem).peak * 6 // 5
        assert evaluate(problem, range(2 * LAYERS))[1].peak > budget
        found = order_within(problem, budget)
        assert found == order_within(problem, budget)
        assert len(np.unique(found)) == 2 * LAYERS
        assert evaluate(problem, found)[1].peak <= budget
