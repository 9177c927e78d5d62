"""Orders found with more room and then mended: whole, the same from one seed, within the budget where plans exist."""

from __future__ import annotations

from random import Random

import numpy as np

from solvers.clock import Clock, Work
from solvers.methods.auto.auto import best_of_pass
from solvers.methods.auto.question import SearchQuestion
from solvers.methods.auto.roomier import Roomier
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits, Problem
from solvers.schedule import evaluate
from tests.solvers.training_chain import LAYERS, training_chain


def orders_within(problem: Problem, budget: int) -> list[list[int]]:
    asked = SearchQuestion(problem, budget, Limits(Clock(1e9, work=Work(), most=1 << 40)))
    asked.moves = 4_000
    asked.pool.offer(np.arange(2 * LAYERS), "test")
    roomier = Roomier(asked, best_of_pass)
    while roomier.ready():
        limits = asked.aside()
        for offer in roomier.begin()(limits):
            assert limits.clock.work.spent > 0
            asked.pool.offer(*offer)
    return [entry.steps.tolist() for entry in asked.pool.entries[:4]]


def test_orders_that_had_more_room_are_mended_to_fit() -> None:
    random = Random(43)
    for _ in range(3):
        problem = training_chain(random)
        budget = peak_bound(problem).peak * 6 // 5
        assert evaluate(problem, range(2 * LAYERS))[1].peak > budget
        found = orders_within(problem, budget)
        assert found == orders_within(problem, budget)
        assert all(len(np.unique(order)) == 2 * LAYERS for order in found)
        assert evaluate(problem, found[0])[1].peak <= budget
