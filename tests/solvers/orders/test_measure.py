"""The compiled measure against lower + simulate, which share no code with it."""

from __future__ import annotations

from random import Random

import numpy as np

from solvers.faults import faults
from solvers.orders.arrays import arrays_of
from solvers.orders.measure import ILLEGAL, measure, trim
from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.simulate import simulate
from tests.solvers.random_problems import random_order, random_problem


def test_measure_agrees_with_simulate_on_random_orders() -> None:
    random = Random(1)
    for _ in range(600):
        problem = random_problem(random, random.randint(1, 9))
        assert not list(faults(problem))
        order = random_order(random, problem, random.randint(0, 8))
        outcome = simulate(problem, lower(problem, order))
        assert measure(arrays_of(problem), order) == (outcome.cost, outcome.peak), (problem, order)


def test_an_illegal_order_is_recognised() -> None:
    problem = Problem((Node(1, (), (0,)), Node(1, (0,), (1,))), (1, 1), (1,))
    assert measure(arrays_of(problem), (1, 0))[1] == ILLEGAL
    assert measure(arrays_of(problem), (0,))[1] == measure(arrays_of(problem), ())[1] == ILLEGAL
    assert measure(arrays_of(problem), (0, 1)) == (2, 2)


def test_a_view_that_is_an_output_is_counted_as_simulate_counts_it() -> None:
    nodes = (Node(1, (), (0,)), Node(0, (0,), (1,), views=((1, 0),)), Node(1, (0, 1), (2,)))
    problem = Problem(nodes, (4, 4, 1), (1,))
    for order in ((0, 1, 2), (0, 1, 2, 1), (0, 1, 2, 0, 1)):
        outcome = simulate(problem, lower(problem, order))
        assert measure(arrays_of(problem), order) == (outcome.cost, outcome.peak)


def test_trim_drops_only_what_nobody_needs() -> None:
    random = Random(2)
    for _ in range(200):
        problem = random_problem(random, random.randint(1, 9))
        order = random_order(random, problem, 6)
        arrays = arrays_of(problem)
        trimmed = trim(arrays, np.asarray(order, dtype=np.int64))
        cost, peak = measure(arrays, order)
        trimmed_cost, trimmed_peak = measure(arrays, trimmed)
        assert trimmed_cost <= cost
        assert ILLEGAL < trimmed_peak <= peak
