"""What cannot be made again and is needed later: a bound, held to the oracle's least peaks of random problems."""

from __future__ import annotations

import random
from dataclasses import replace

from solvers.orders.bounds import peak_bound
from solvers.orders.kept import kept_bound, kept_values
from solvers.problem import Node, Problem
from tests.oracle.exact import least_peak
from tests.oracle.problems import random_problem


def test_no_order_holds_less() -> None:
    sharper = 0
    for seed in range(300):
        draw = random.Random(seed)
        problem = random_problem(draw, 7, 10)
        nodes = tuple(replace(node, once=node.once or draw.random() < 0.5) for node in problem.nodes)
        problem = replace(problem, nodes=nodes)
        least, found = least_peak(problem, any_order=True), kept_bound(problem)
        assert found <= least, seed
        sharper += found > peak_bound(problem).peak
    assert sharper > 10


def test_masks_wait_for_the_way_back() -> None:
    """Two masks of 5 bytes are drawn on the way there and read on the way back; between lies a node of 8 bytes."""
    nodes = (
        Node(1, (), (0,), once=True),
        Node(1, (0,), (1,), once=True),
        Node(1, (1,), (2,)),
        Node(1, (2, 1), (3,)),
        Node(1, (3, 0), (4,)),
    )
    problem = Problem(nodes, (5, 5, 8, 1, 1), outputs=(4,))
    assert kept_values(problem)[2] == {0, 1}
    assert kept_bound(problem) == least_peak(problem, any_order=True) == 19
    assert peak_bound(problem).peak < 19
