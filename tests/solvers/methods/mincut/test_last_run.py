"""What is held at the last run of the widest ops: a bound, held to the oracle's least peaks of random problems."""

from __future__ import annotations

import random
from dataclasses import replace

from solvers.clock import limited
from solvers.methods.mincut.last_run import last_run_bound
from solvers.orders.bounds import peak_bound
from solvers.orders.kept import kept_bound
from solvers.problem import Node, Problem
from tests.oracle.exact import least_peak
from tests.oracle.problems import random_problem


def bound(problem: Problem) -> int:
    return last_run_bound(problem, limited(None, 10**9))


def test_no_order_holds_less() -> None:
    sharper = 0
    for seed in range(200):
        draw = random.Random(seed)
        problem = random_problem(draw, 7, 10)
        nodes = tuple(replace(n, views=(), updates=(), once=draw.random() < 0.2) for n in problem.nodes)
        values = range(len(problem.sizes))
        outputs = tuple({*problem.outputs, *draw.sample(values, min(2, len(values)))})
        problem = replace(problem, nodes=nodes, outputs=outputs, inner=frozenset())
        least, found = least_peak(problem, any_order=True), bound(problem)
        assert found <= least, seed
        sharper += found > max(kept_bound(problem), peak_bound(problem).peak)
    assert sharper > 10


def test_results_of_one_wide_op_are_held_while_the_other_runs() -> None:
    """Two outputs, each made by way of 9 bytes: the first to be made waits for the other, or is made again from 5."""
    nodes = (
        Node(1, (), (0,)),
        Node(1, (0,), (1,)),
        Node(1, (1,), (2,)),
        Node(1, (0,), (3,)),
        Node(1, (3,), (4,)),
    )
    problem = Problem(nodes, (5, 9, 3, 9, 3), outputs=(2, 4))
    assert bound(problem) == least_peak(problem, any_order=True) == 17
    assert peak_bound(problem).peak == kept_bound(problem) == 14


def test_where_memory_may_be_shared_otherwise_nothing_is_said() -> None:
    problem = Problem((Node(1, (), (0,)), Node(1, (0,), (1,), views=((1, 0),))), (5, 5), outputs=(1,))
    assert bound(problem) == 0
