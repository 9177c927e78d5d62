"""The oracle against published optima, and against every order of very small problems as simulate sees it."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from solvers.plan import IllegalOrder, lower
from solvers.problem import Node, Problem
from solvers.simulate import IllegalPlan, simulate
from tests.solvers.oracle import cheapest, least_peak
from tests.solvers.random_problems import random_problem


def unit_chain(layers: int) -> Problem:
    """Checkmate's linear network: forward nodes, a loss, and for each a gradient."""
    nodes = [Node(1, (index - 1,) if index else (), (index,)) for index in range(layers)]
    nodes.append(Node(1, (layers - 1,), (layers,), backward=True))
    for layer in range(layers - 1, -1, -1):
        nodes.append(Node(1, (layer, len(nodes) - 1), (len(nodes),), backward=True))
    return Problem(tuple(nodes), (1,) * len(nodes), (len(nodes) - 1,))


def brute_force(problem: Problem, longest: int, *, in_order: bool) -> dict[int, int]:
    """peak -> least cost, over every order up to a length."""
    found: dict[int, int] = {}
    count = len(problem.nodes)
    for length in range(count, longest + 1):
        for order in product(range(count), repeat=length):
            if set(order) != set(range(count)):
                continue
            first = [order.index(index) for index in range(count)]
            if in_order and first != sorted(first):
                continue
            try:
                outcome = simulate(problem, lower(problem, order))
            except (IllegalOrder, IllegalPlan):
                continue
            found[outcome.peak] = min(outcome.cost, found.get(outcome.peak, outcome.cost))
    return found


@pytest.mark.parametrize("in_order", [False, True])
def test_no_short_order_beats_the_oracle_and_the_oracle_is_reached(in_order: bool) -> None:
    random = Random(3)
    for _ in range(40):
        problem = random_problem(random, random.randint(1, 3))
        count = len(problem.nodes)
        orders = brute_force(problem, {1: 4, 2: 6, 3: 7}[count], in_order=in_order)
        assert min(orders) == least_peak(problem, in_order=in_order), problem
        for budget in range(min(orders), max(orders) + 1):
            best = min(cost for peak, cost in orders.items() if peak <= budget)
            assert cheapest(problem, budget, in_order=in_order) == best, (problem, budget)
        assert cheapest(problem, min(orders) - 1, in_order=in_order) is None


def test_unit_chain_of_four_layers() -> None:
    """Optima that came with the instance."""
    assert least_peak(unit_chain(4)) == 3
    for budget, cost in {3: 15, 4: 11, 5: 10, 6: 9}.items():
        assert cheapest(unit_chain(4), budget) == cost
