"""Yu and He's functions f1 and f2 as printed (section 2.3), with a byte for each element, so that bytes are accesses.

f1(a, b, c, d) = cos(cos(a + b + c + d)): the sum alone is to be saved, which takes 9 accesses; saving its cosine too,
or the four inputs, takes 11. f2(x) = x * (uniform(x) < 0.5): the mask is to be saved, and the draw never made again.
The witness of a cut's value is networkx, on the network of the paper written out here once more.
"""

from __future__ import annotations

from collections.abc import Collection

import networkx
import pytest

from solvers.methods.mincut.cut import cut
from solvers.methods.mincut.cuts import paper_cut
from solvers.methods.mincut.joint import DEFAULT, JointGraph, banned, weight
from solvers.methods.mincut.min_cut import solve
from solvers.methods.mincut.options import CutOptions
from solvers.methods.mincut.rebuild import Rebuilding
from solvers.methods.mincut.traffic import traffic_of
from solvers.methods.mincut.training import joint_of
from solvers.problem import Kind, Limits, Node, Problem
from tests.solvers.methods.mincut.training_graphs import random_training

PAPER = CutOptions(objective="paper")
P = Kind.POINTWISE
A, B, C, D, G = ((number, 1) for number in range(5))  # what is given: the inputs, and the gradient of the result


def f1() -> Problem:
    first, second, x, once, twice, d_once, d_sum, dx = range(8)
    nodes = (
        Node(1, (), (first,), kind=P, takes=(A, B)),
        Node(1, (first,), (second,), kind=P, takes=(C,)),
        Node(1, (second,), (x,), kind=P, takes=(D,)),
        Node(1, (x,), (once,), kind=P),
        Node(1, (once,), (twice,), kind=P),
        Node(1, (once,), (d_once,), kind=P, takes=(G,), backward=True),  # -g sin(cos(x))
        Node(1, (x,), (d_sum,), kind=P, backward=True),  # sin(x)
        Node(1, (d_once, d_sum), (dx,), kind=P, backward=True),
    )
    return Problem(nodes, (1,) * 8, (twice, dx))


def accesses(problem: Problem, saved: Collection[int]) -> int:
    return traffic_of(problem, Rebuilding.of(problem).order(saved)).total


def test_f1_saves_the_sum_alone() -> None:
    problem = f1()
    assert paper_cut(problem) == {2}
    assert accesses(problem, {2}) == 9
    assert accesses(problem, {2, 3}) == 11
    assert accesses(problem, set()) == 11
    order = solve(problem, 1 << 40, Limits(), PAPER).order
    assert order is not None
    assert traffic_of(problem, order).total == 9


def test_f2_saves_the_mask_and_draws_once() -> None:
    """A mask takes a byte an element, all else four."""
    x, gradient = (0, 4), (1, 4)
    nodes = (
        Node(1, (), (0,), once=True, kind=P),
        Node(1, (0,), (1,), kind=P),
        Node(1, (1,), (2,), kind=P, takes=(x,)),
        Node(1, (1,), (3,), kind=P, takes=(gradient,), backward=True),
    )
    problem = Problem(nodes, (4, 1, 4, 4), (2, 3))
    assert paper_cut(problem) == {1}
    assert solve(problem, 1 << 40, Limits(), PAPER).order == (0, 1, 2, 3)


def test_a_mask_of_the_backward_pass_is_made_early() -> None:
    """conv, relu, add; backward reads only where the relu was positive, which is a quarter as large."""
    nodes = (
        Node(9, (), (0,), kind=Kind.COMPUTE, takes=(A,)),
        Node(1, (0,), (1,), kind=P),
        Node(1, (1,), (2,), kind=P, takes=(B,)),
        Node(1, (2,), (3,), kind=P, backward=True),  # the loss's gradient
        Node(1, (3,), (4,), kind=P, backward=True),  # one of its results: no mask is in that
        Node(1, (1,), (5,), kind=P, backward=True),  # relu > 0
        Node(1, (3, 5), (6,), kind=P, backward=True),
    )
    problem = Problem(nodes, (4, 4, 4, 4, 4, 1, 4), (2, 4, 6))
    assert paper_cut(problem) == {2, 5}  # the result is an output, and so there in any case
    assert Rebuilding.of(problem).order({2, 5}) == (0, 1, 5, 2, 3, 4, 6)


def by_networkx(joint: JointGraph) -> int:
    """Algorithms 1 and 2, from each value's classes."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(["source", "sink"])
    for index in banned(joint, DEFAULT):
        graph.add_edge("source", (index, "in"))
    for index in range(len(joint.vertices)):
        if joint.closure[index]:
            graph.add_edge((index, "in"), "sink")
            continue
        price = weight(joint, index)
        graph.add_edge((index, "in"), (index, "out"), **({} if price is None else {"capacity": price}))
        if joint.backward[index]:
            graph.add_edge((index, "out"), "sink")
        for user in joint.users[index]:
            graph.add_edge((index, "out"), (user, "in"))
    return int(networkx.minimum_cut_value(graph, "source", "sink"))


@pytest.mark.parametrize("seed", range(40))
def test_cuts_are_least(seed: int) -> None:
    joint, _ = joint_of(random_training(seed, 12))
    assert cut(joint, DEFAULT).value == by_networkx(joint)
