"""Annealing keeps its books straight: what it believes of memory and cost against lower + simulate."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from solvers._loops import anneal_runs
from solvers.methods.exact.runs import start
from solvers.methods.exact.tables import EXCESS, KEYS, MEMORY, STEPS, TOTAL, keys_in, order_of, pack
from solvers.orders.arrays import arrays_of
from solvers.orders.best import in_order
from solvers.orders.cooling import Cooling
from solvers.orders.measure import measure
from solvers.problem import Node
from tests.solvers.random_problems import random_order, random_problem


def test_what_annealing_believes_is_never_less_than_what_is_so() -> None:
    random = Random(5)
    for round_ in range(150):
        problem = random_problem(random, random.randint(2, 14), plain=round_ % 2 == 0)
        ended = replace(problem, nodes=(*problem.nodes, Node(0, tuple(sorted(set(problem.outputs))), ())))
        arrays, count = arrays_of(ended), len(problem.nodes)
        order = np.array(random_order(random, problem, 6), dtype=np.int64)
        _, first = np.unique(order, return_index=True)
        assert np.all(np.diff(first) > 0)
        budget = measure(arrays_of(problem), list(range(count)))[1] * random.choice((2, 3, 4)) // 4
        tables = pack(arrays)
        state = start(tables, budget, order)
        keys, best = keys_in(state).copy(), np.array([1 << 60, 0])
        for moves in (0, 1, 5, 50, 500):
            anneal_runs(tables, state, keys, best, Cooling(moves, 3.0, random.randint(0, 99)))
            steps = state[STEPS]
            now = order_of(state[state[KEYS] :][:steps], count + 1)
            assert in_order(now, count)
            cost, peak = measure(arrays_of(problem), now)
            assert cost == state[TOTAL]
            believed = state[state[MEMORY] :][:steps]
            assert peak <= believed.max(), (problem, now)
            if round_ % 2 == 0:
                assert peak == believed.max()
            assert state[EXCESS] == np.maximum(0, believed - budget).sum()
        if best[1]:
            cost, peak = measure(arrays_of(problem), order_of(keys[: best[1]], count + 1))
            assert cost == best[0]
            assert peak <= budget
