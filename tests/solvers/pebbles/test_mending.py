"""Orders that take more than the budget, mended: held to the simulation, and to what the oracle knows to exist."""

from __future__ import annotations

from random import Random

import numpy as np

from solvers.orders.best import Best
from solvers.pebbles.copies import Copies
from solvers.pebbles.mending import Mending
from solvers.problem import Limits, Node, Problem
from solvers.schedule import evaluate
from tests.oracle.exact import least_peak
from tests.oracle.problems import random_problem

STATES = 200_000


def every_result_wanted(random: Random, count: int) -> Problem:
    """Ops that each write one value; what no op reads is an output."""
    reads = [tuple(sorted(random.sample(range(step), min(step, random.randint(0, 3))))) for step in range(count)]
    read = {value for row in reads for value in row}
    nodes = tuple(Node(random.randint(1, 9), row, (step,)) for step, row in enumerate(reads))
    outputs = tuple(value for value in range(count) if value not in read)
    return Problem(nodes, tuple(random.randint(1, 8) for _ in range(count)), outputs)


def test_a_mended_order_runs_every_op_and_most_fit_where_any_order_does() -> None:
    random, mended, could = Random(41), 0, 0
    for number in range(200):
        many = random.randint(3, 7)
        problem = every_result_wanted(random, many) if number % 2 else random_problem(random, many, 8)
        given = np.arange(many)
        plain, budget = evaluate(problem, given.tolist())[1].peak, least_peak(problem, any_order=True)
        if plain <= budget:
            continue
        mending = Mending(Copies(problem), Best(problem, budget, Limits()), STATES)
        order = mending.run(given)
        assert set(order.tolist()) == set(range(many))
        assert mending.excess(order).sum() <= mending.excess(given).sum()
        if number % 2:
            could += 1
            mended += evaluate(problem, order.tolist())[1].peak <= budget
    assert could > 20
    assert mended > 0.9 * could


def test_a_copy_held_across_the_place_is_let_go_and_made_again() -> None:
    """A long chain with a large value at its beginning that the end reads too, and a place that needs the room."""
    last = 60
    nodes = [Node(1, (step - 1,) if step else (), (step,)) for step in range(last)]
    nodes.append(Node(1, (0, last - 1), (last,)))
    sizes = [4] + [1] * last
    sizes[30] = 5
    problem = Problem(tuple(nodes), tuple(sizes), (last,))
    best = Best(problem, 7, Limits())
    order = Mending(Copies(problem), best, STATES).run(np.arange(last + 1))
    found = best.offer(order, "test")
    assert found is not None
    assert found.peak <= 7
    assert found.cost == last + 2


def test_a_budget_that_nothing_fits_in_changes_nothing() -> None:
    problem = Problem((Node(1, (), (0,)), Node(1, (0,), (1,))), (4, 4), (1,))
    assert Mending(Copies(problem), Best(problem, 5, Limits()), STATES).run(np.arange(2)).tolist() == [0, 1]
