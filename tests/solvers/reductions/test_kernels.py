"""Fused ops are scheduled as one: witnesses are small problems by hand, and random ones with random inner values."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.reductions.kernels import with_whole_kernels
from solvers.reductions.views import reduced
from solvers.simulate import simulate
from tests.solvers.random_problems import random_problem


def test_a_product_and_its_sum_are_one_node() -> None:
    """A product, something else, then the sum that it goes into: both stand where the sum stood."""
    nodes = (Node(1, (), (0,)), Node(5, (0,), (1,)), Node(1, (0,), (2,)), Node(2, (1, 2), (3,)))
    problem = Problem(nodes, (4, 8, 2, 8), (3,), inner=frozenset({1}))
    smaller = reduced(problem)
    assert [node.cost for node in smaller.problem.nodes] == [1, 1, 7]
    assert smaller.expand([0, 1, 2]) == (0, 2, 1, 3)
    assert smaller.shrink([0, 1, 2, 3]) == (0, 1, 2)


def test_what_several_kernels_read_ties_none() -> None:
    nodes = (Node(1, (), (0,)), Node(1, (0,), (1,)), Node(1, (1,), (2,)), Node(1, (1,), (3,)))
    problem = Problem(nodes, (1, 1, 1, 1), (2, 3), inner=frozenset({1}))
    assert len(reduced(problem).problem.nodes) == 4


def test_ops_with_another_between_them_are_left_apart() -> None:
    """An op that needs the first and is needed by the last cannot run before or after both."""
    nodes = (Node(1, (), (0, 1)), Node(1, (1,), (2,)), Node(1, (0, 2), (3,)))
    problem = Problem(nodes, (1, 1, 1, 1), (3,), inner=frozenset({0}))
    assert reduced(problem).expand([0, 1, 2]) == (0, 1, 2)


@pytest.mark.parametrize("seed", range(60))
def test_expanded_orders_are_legal_and_need_no_more(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, 9)
    inner = frozenset(value for value in range(len(problem.sizes)) if random.random() < 0.4)
    problem = replace(problem, inner=inner)
    smaller = with_whole_kernels(problem)
    order = list(range(len(smaller.problem.nodes)))
    again = [place for place in order if not smaller.problem.nodes[place].once and random.random() < 0.5]
    for given in (order, order + again):
        expanded = smaller.expand(given)
        assert sorted(set(expanded)) == list(range(len(problem.nodes)))
        real = simulate(problem, lower(problem, expanded))
        reckoned = simulate(smaller.problem, lower(smaller.problem, given))
        assert real.cost == reckoned.cost
        assert real.peak <= reckoned.peak
