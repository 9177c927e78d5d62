"""Two passes: one after the other they are a legal order, which needs no more than one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from solvers.faults import faults
from solvers.orders.best import Best
from solvers.problem import Limits, Node, Problem
from solvers.reductions.passes import Pass, in_two_passes
from solvers.schedule import baseline, evaluate
from tests.oracle.problems import random_problem as odd_problem
from tests.solvers.random_problems import random_order, random_problem


def test_one_pass_after_the_other_computes_everything() -> None:
    random = Random(47)
    tried = 0
    for _ in range(600):
        problem = odd_problem(random, random.randint(3, 10))
        passes = in_two_passes(problem, random.choice((0.2, 0.5, 0.9)))
        if passes is None:
            continue
        assert all(part.nodes for part in passes)
        assert not [fault for part in passes for fault in faults(part.problem)]
        orders = [random_order(random, part.problem, 3) for part in passes]
        times = Counter(_whole(passes, orders))
        assert set(times) == set(range(len(problem.nodes)))
        assert all(times[index] == 1 for index, node in enumerate(problem.nodes) if node.once)
        assert Best(problem, -1, Limits()).weigh(_whole(passes, orders)) is not None
        tried += 1
    assert tried > 200


def test_together_they_need_no_more_than_one_of_them() -> None:
    random = Random(48)
    tried = 0
    for _ in range(200):
        problem = random_problem(random, random.randint(3, 12), plain=True)
        passes = in_two_passes(problem, random.choice((0.2, 0.5, 0.9)))
        if passes is None:
            continue
        orders = [random_order(random, part.problem, 3) for part in passes]
        alone = [evaluate(part.problem, order)[1].peak for part, order in zip(passes, orders, strict=True)]
        assert evaluate(problem, _whole(passes, orders))[1].peak <= max(alone)
        tried += 1
    assert tried > 50


def _whole(passes: Sequence[Pass], orders: Sequence[Sequence[int]]) -> list[int]:
    return [index for part, order in zip(passes, orders, strict=True) for index in part.expand(order)]


def test_where_all_runs_once_in_the_first_pass_there_is_no_second() -> None:
    nodes = (Node(1, (), (0,), once=True), Node(1, (0,), (1,), once=True))
    assert in_two_passes(Problem(nodes, (1, 1), (0, 1)), 0.5) is None


def test_an_output_that_is_put_off_leaves_its_room_to_others() -> None:
    """Two ops each need 8 for themselves. The first one's output of 4 would be held beside the second's."""
    nodes = (Node(1, (), (0,)), Node(1, (0,), (1,)), Node(1, (0,), (2,), workspace=6), Node(1, (2,), (3,)))
    problem = Problem(nodes, (1, 4, 1, 1), (1, 3))
    passes = in_two_passes(problem, 0.5)
    assert passes is not None
    assert baseline(problem)[1].peak == 12
    assert [part.nodes for part in passes] == [(0, 2, 3), (0, 1)]
    whole = [index for part in passes for index in part.nodes]
    assert evaluate(problem, whole)[1].peak == 8
