"""Windows: the known order is a solution of each, and what comes out is legal, fits and costs no more."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from solvers import scip
from solvers.clock import Clock
from solvers.methods.exact.window import WindowProgram, build, neighbours
from solvers.orders.arrays import arrays_of
from solvers.orders.best import in_order
from solvers.orders.measure import ILLEGAL, measure, memory_of
from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.simulate import simulate
from tests.solvers.oracle import cheapest
from tests.solvers.random_problems import random_order, random_problem
from tests.solvers.test_oracle import unit_chain


def window_of(problem: Problem, order: tuple[int, ...], budget: int, chosen: frozenset[int]) -> WindowProgram:
    ended = replace(problem, nodes=(*problem.nodes, Node(0, tuple(sorted(set(problem.outputs))), ())))
    steps = [*order, len(problem.nodes)]
    memory = memory_of(arrays_of(ended), np.array(steps, np.int64)).tolist()
    return build(ended, steps, memory, budget, chosen, 1.0)


def solved(window: WindowProgram) -> tuple[int, ...]:
    answer = scip.solve(window.program, scip.Settings(Clock(1e9)), [window.start])
    assert answer.values is not None
    return tuple(window.order(answer.values))


def test_the_known_order_satisfies_every_row() -> None:
    random = Random(5)
    rows = 0
    for _ in range(400):
        problem = random_problem(random, random.randint(2, 12))
        order = random_order(random, problem, random.randint(0, 8))
        peak = simulate(problem, lower(problem, order)).peak
        window = window_of(problem, order, peak, neighbours(problem, random, random.randint(1, 8)))
        for columns, coefficients, low, high in window.program.rows:
            total = sum(c * window.start[column] for column, c in zip(columns, coefficients, strict=True))
            assert low <= total <= high, (problem, order)
            rows += 1
        assert tuple(window.order(window.start)) == order
    assert rows > 1000


def test_what_a_window_finds_on_plain_problems_is_legal_fits_and_costs_no_more() -> None:
    random = Random(6)
    better = 0
    for _ in range(60):
        problem = random_problem(random, random.randint(4, 9), plain=True)
        order = random_order(random, problem, random.randint(2, 6))
        before = simulate(problem, lower(problem, order))
        found = solved(window_of(problem, order, before.peak, neighbours(problem, random, 6)))
        cost, peak = measure(arrays_of(problem), found)
        assert peak != ILLEGAL
        assert peak <= before.peak
        assert cost <= before.cost
        assert in_order(np.array(found), len(problem.nodes))
        better += cost < before.cost
        optimum = cheapest(problem, before.peak, in_order=True)
        assert optimum is not None
        assert cost >= optimum
    assert better > 10


def test_a_window_over_everything_reaches_the_optimum_of_a_chain() -> None:
    """From recomputing all the way back before each backward op."""
    problem = unit_chain(8)
    layers = len(problem.nodes) // 2
    order: list[int] = []
    for index in range(len(problem.nodes)):
        order += range(0, max(0, 2 * layers - index - 1)) if index > layers else ()
        order.append(index)
    window = window_of(problem, tuple(order), 4, frozenset(range(len(problem.nodes))))
    cost, peak = measure(arrays_of(problem), solved(window))
    assert (cost, peak) == (26, 4)
