"""The memory that the search keeps as it moves about, held to the order it has come to and to `measure`."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from solvers._loops import anneal_orders, excess_of_state, fill_state, order_of_state
from solvers.methods.auto.layout import ADDED, BUDGET, FIELDS, HELD, ROOF, SLOTS, TOTAL, TREE, WIDE, blank
from solvers.methods.auto.record import COST, EXCESS, LENGTH, empty_record
from solvers.methods.exact.tables import pack
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.cooling import Cooling, PricedCooling
from solvers.orders.measure import memory_of
from tests.solvers.random_problems import random_problem


def memory(state: Ints) -> list[int]:
    """What is held at each slot that is taken."""
    found = []
    for slot in range(state[SLOTS]):
        held, node = int(state[state[HELD] + slot]), int(state[SLOTS] + slot) // WIDE
        while node:
            held += int(state[state[TREE] + FIELDS * node + ADDED])
            node >>= 1
        if held >= 0:
            found.append(held)
    return found


def over(held: list[int], budget: int, roof: int) -> int:
    return sum(max(0, much - budget) + 100 * max(0, much - roof) for much in held)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_kept_is_what_is_there(seed: int) -> None:
    problem = random_problem(Random(seed), 12, plain=seed % 4 == 0)
    tables, plain = pack(arrays_of(problem.ended())), arrays_of(problem)
    last = len(problem.nodes)
    budget = int(0.8 * memory_of(plain, np.arange(last)).max())
    state, fresh = (blank(tables, 2 * last, budget - problem.resident) for _ in range(2))
    for one in (state, fresh):
        one[ROOF] = one[BUDGET] * 11 // 10
    fill_state(tables, state, np.arange(last + 1))
    record = empty_record(int(state[SLOTS]))
    for part in range(6):
        heat = 0.3 * sum(node.cost for node in problem.nodes)
        cooling = PricedCooling(Cooling(150, heat, 7 * seed + part), 0.5, 5.0)
        anneal_orders(tables, state, record, cooling, part == 3, np.zeros(1, np.int64))
        order = order_of_state(state)
        fill_state(tables, fresh, np.append(order, last))
        assert memory(state) == memory(fresh)
        assert excess_of_state(state) == excess_of_state(fresh) == over(memory(state), state[BUDGET], state[ROOF])
        assert state[TOTAL] == fresh[TOTAL] == plain.cost[order].sum()
        truth = memory_of(plain, order)
        assert len(truth) == len(order), "an order that cannot run"
        assert (truth - problem.resident <= memory(state)[:-1]).all()
        if seed % 4 == 0:  # nothing is shared, so nothing is counted too high
            assert (truth == memory(state)[:-1]).all()
    if record.facts[LENGTH]:  # what was written down is what was met
        fill_state(tables, fresh, record.steps[: record.facts[LENGTH]])
        assert fresh[TOTAL] == record.facts[COST]
        assert excess_of_state(fresh) == record.facts[EXCESS]
