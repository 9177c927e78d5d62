"""The memory that the search keeps as it moves about, held to the order it has come to and to `measure`."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from solvers.methods.auto.anneal import anneal
from solvers.methods.auto.layout import LAZY, SLOTS, TOTAL, TREE, blank
from solvers.methods.auto.state import fill, order_of
from solvers.methods.exact.tables import pack
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.measure import memory_of
from tests.solvers.random_problems import random_problem


def memory(state: Ints) -> list[int]:
    """What the tree holds at each slot that is taken."""
    found = []
    for slot in range(state[SLOTS]):
        node = int(state[SLOTS]) + slot
        held = int(state[state[TREE] + node])
        while node := node >> 1:
            held += int(state[state[LAZY] + node])
        if held >= 0:
            found.append(held)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_is_kept_is_what_is_there(seed: int) -> None:
    problem = random_problem(Random(seed), 12, plain=seed % 4 == 0)
    tables, plain = pack(arrays_of(problem.ended())), arrays_of(problem)
    last = len(problem.nodes)
    budget = int(0.8 * memory_of(plain, np.arange(last)).max())
    state, fresh = (blank(tables, 2 * last, budget - problem.resident) for _ in range(2))
    fill(tables, state, np.arange(last + 1))
    best_order, best = np.zeros(state[SLOTS], np.int64), np.array([1 << 62, 0, 0])
    for part in range(6):
        heat = 0.3 * sum(node.cost for node in problem.nodes)
        anneal(tables, state, best_order, best, 150, heat, 7 * seed + part, 0.5, 5.0, part == 3, np.zeros(1, np.int64))
        order = order_of(state)
        fill(tables, fresh, np.append(order, last))
        assert memory(state) == memory(fresh)
        assert state[TOTAL] == fresh[TOTAL] == plain.cost[order].sum()
        truth = memory_of(plain, order)
        assert len(truth) == len(order), "an order that cannot run"
        assert (truth - problem.resident <= memory(state)[:-1]).all()
        if seed % 4 == 0:  # nothing is shared, so nothing is counted too high
            assert (truth == memory(state)[:-1]).all()
