"""The memory that the search keeps as it moves about, held to the order it has come to and to `measure`."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from solvers._loops import annealed
from solvers.annealing.cooling import Cooling, Kept
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.best import in_order
from solvers.orders.measure import memory_of
from tests.solvers.random_problems import random_problem

STILL = Cooling(0, 1.0, 1, 1.0, 1.0)


def over(held: Ints, budget: int, roof: int) -> int:
    return int(sum(max(0, much - budget) + 100 * max(0, much - roof) for much in held.tolist()))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_kept_is_what_is_there(seed: int) -> None:
    problem = random_problem(Random(seed), 12, plain=seed % 4 == 0)
    ended, plain = arrays_of(problem.ended()), arrays_of(problem)
    last = len(problem.nodes)
    budget = int(0.8 * memory_of(plain, np.arange(last)).max()) - problem.resident
    roof, order = budget * 11 // 10, np.arange(last + 1)
    in_given_order = order
    for part, kept in enumerate((*Kept, *Kept, Kept.ORDER)):
        temperature = 0.3 * sum(node.cost for node in problem.nodes)
        cooling = Cooling(150, temperature, 7 * seed + part, 0.5, 5.0)
        begin = in_given_order if kept is Kept.ORDER else order
        order, held, excess, total, best, least, cost = annealed(ended, begin, budget, roof, cooling, kept)
        if kept is Kept.REPEATS:
            assert sorted(order) == sorted(begin)
        elif kept is Kept.ORDER:
            assert all(in_order(one[:-1], last) for one in (order, best) if len(one))
        _, anew, excess_anew, total_anew, *_ = annealed(ended, order, budget, roof, STILL, kept)
        assert held.tolist() == anew.tolist()
        assert excess == excess_anew == over(held, budget, roof)
        steps = order[:-1]
        assert total == total_anew == plain.cost[steps].sum()
        truth = memory_of(plain, steps)
        assert len(truth) == len(steps), "an order that cannot run"
        assert (truth - problem.resident <= held[:-1]).all()
        if seed % 4 == 0:  # nothing is shared, so nothing is counted too high
            assert (truth - problem.resident == held[:-1]).all()
        if len(best):  # what was written down is what was met
            assert annealed(ended, best, budget, roof, STILL, kept)[2:4] == (least, cost)
