"""The allocations of a plan: their live bytes are `simulate`'s peak, whatever shares memory or works in it."""

from __future__ import annotations

import random

import pytest

from solvers.placement.lifetimes import Requested
from solvers.placement.packing import pack
from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.schedule import baseline
from solvers.simulate import simulate
from tests.oracle.problems import hasty_order
from tests.oracle.problems import random_problem as any_problem
from tests.solvers.placement.witness import requests
from tests.solvers.random_problems import random_problem


@pytest.mark.parametrize("seed", range(40))
def test_live_bytes_are_the_simulated_peak(seed: int) -> None:
    problem = random_problem(random.Random(seed), 9, plain=seed % 2 == 0)
    plan, _ = baseline(problem)
    lifetimes = requests(problem, plan).lifetimes
    rows = [*zip(*(column.tolist() for column in lifetimes), strict=True)]
    held = [sum(size for start, end, size in rows if start <= t < end) for t in range(len(rows))]
    assert lifetimes.most_at_once() == max(held, default=0) == simulate(problem, plan).peak - problem.resident


@pytest.mark.parametrize("seed", range(200))
def test_what_an_order_requests_is_what_its_plan_does(seed: int) -> None:
    source = random.Random(seed)
    problem = any_problem(source, 12)
    requested = Requested(problem)
    for _ in range(3):
        order = hasty_order(source, problem, 5)
        witness = requests(problem, lower(problem, order)).lifetimes
        for found, wanted in zip(requested.by(order), witness, strict=True):
            assert found.tolist() == wanted.tolist()


def test_allocations_in_the_order_of_the_runtime() -> None:
    """Pieces taken early come before the results, workspace after them; a view asks for nothing."""
    nodes = (
        Node(1, (), (0,), workspace=7),
        Node(1, (0,), (1,), views=((1, 0),)),
        Node(1, (1,), (2,), workspace=9, early=(4, 5)),
    )
    problem = Problem(nodes, (10, 10, 20), (2,))
    plan, _ = baseline(problem)
    found = requests(problem, plan)
    assert [column.tolist() for column in found.lifetimes] == [[0, 1, 2, 3, 4], [5, 2, 5, 5, 5], [10, 7, 4, 5, 20]]
    assert found.outputs == (4,)
    placed = pack(found.lifetimes)
    assert [size for size, _ in placed.allocations] == [10, 7, 4, 5, 20]
    assert placed.block == placed.bound == 4 * 64  # the first result, two pieces and the last result
