"""Accesses to memory under fusion: Yu and He's examples, counted by hand.

The paper's text was not at hand. f, f1 and f2 are the functions of that name in the tests that its authors published
with functorch's rematerialization, which state the groups and how many values each reads and writes, before and after;
GeLU is written out with tanh, and the counts are those of the paper's Table 1: 13 accesses where autograd saves what
it reads, 5 where all is computed again from the input.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from solvers.methods.mincut.between import between_groups
from solvers.methods.mincut.cuts import paper_cut
from solvers.methods.mincut.rebuild import Rebuilding
from solvers.methods.mincut.traffic import Traffic, runs_of, traffic_of
from solvers.plan import lower
from solvers.problem import RESIDENT, Kind, Node, Problem
from solvers.reductions.views import reduced
from solvers.simulate import simulate
from tests.solvers.methods.mincut.training_graphs import random_training

P, APART = Kind.POINTWISE, Kind.OPAQUE


def example(*summed: int) -> Problem:
    """b = cos(a), c = relu(b), d = clone(c), e = relu(d), f = relu(e); the sum of some of them. A clone fuses with
    nothing, and every value has one byte, so that bytes are accesses."""
    nodes = [
        Node(1, (), (0,), kind=P, takes=((0, 1),)),
        Node(1, (0,), (1,), kind=P),
        Node(1, (1,), (2,), kind=APART),
        Node(1, (2,), (3,), kind=P),
        Node(1, (3,), (4,), kind=P),
    ]
    total = summed[0]
    for value in summed[1:]:
        nodes.append(Node(1, (total, value), (len(nodes),), kind=P))
        total = len(nodes) - 1
    return Problem(tuple(nodes), (1,) * len(nodes), (total,))


F, F1, F2 = example(0, 1, 3, 4), example(0, 3, 4), example(3, 4)


@pytest.mark.parametrize("problem, before, after", [(F, (5, 4), (4, 3)), (F1, (4, 4), (4, 3)), (F2, (3, 3), (3, 3))])
def test_examples(problem: Problem, before: tuple[int, int], after: tuple[int, int]) -> None:
    order = range(len(problem.nodes))
    assert traffic_of(problem, order) == Traffic(*before, kernels=3)
    assert traffic_of(problem, between_groups(problem, order)) == Traffic(*after, kernels=3)


def test_example_f_hands_over_its_input() -> None:
    """The group that reads b, c and d reads a and d instead, and makes b and c again."""
    assert between_groups(F, range(8)) == (0, 1, 2, 3, 4, 0, 1, 5, 6, 7)


def gelu() -> Problem:
    """y = 0.5 x (1 + tanh(k (x + c x^3))) and its gradient, as autograd writes it; x and y's gradient are given."""
    x, g = (0, 1), (1, 1)
    half, square, cube, scaled, inner, outer, tanh, one, y = range(9)
    forward = [
        Node(1, (), (half,), kind=P, takes=(x,)),
        Node(1, (), (square,), kind=P, takes=(x,)),
        Node(1, (square,), (cube,), kind=P, takes=(x,)),
        Node(1, (cube,), (scaled,), kind=P),
        Node(1, (scaled,), (inner,), kind=P, takes=(x,)),
        Node(1, (inner,), (outer,), kind=P),
        Node(1, (outer,), (tanh,), kind=P),
        Node(1, (tanh,), (one,), kind=P),
        Node(1, (half, one), (y,), kind=P),
    ]
    backward = [
        Node(1, (one,), (9,), kind=P, takes=(g,)),  # of half: g * one
        Node(1, (half,), (10,), kind=P, takes=(g,)),  # of tanh: g * half
        Node(1, (tanh, 10), (11,), kind=P),  # of outer
        Node(1, (11,), (12,), kind=P),  # of inner
        Node(1, (12,), (13,), kind=P),  # of cube
        Node(1, (13,), (14,), kind=P, takes=(x,)),  # of square
        Node(1, (square, 9, 12, 13, 14), (15,), kind=P, takes=(x,)),  # of x
    ]
    nodes = (*forward, *(replace(node, backward=True) for node in backward))
    return Problem(nodes, (1,) * 16, (y, 15))


def test_gelu_takes_13_accesses_and_5_when_cut() -> None:
    problem = gelu()
    assert traffic_of(problem, range(16)).total == 13
    saved = paper_cut(problem)
    assert saved <= {8}, "nothing but y, which is an output, is kept"
    order = Rebuilding.of(problem).order(saved)
    assert traffic_of(problem, order).total == 5
    assert traffic_of(problem, order).kernels == 2


@pytest.mark.parametrize("seed", range(40))
def test_without_fusion_every_op_reads_and_writes(seed: int) -> None:
    problem = random_training(seed)
    found = traffic_of(problem, range(len(problem.nodes)), "none")
    read = sum(problem.sizes[v] for node in problem.nodes for v in node.reads)
    taken = sum(size for node in problem.nodes for _, size in node.takes)
    used = {v for node in problem.nodes for v in node.reads} | set(problem.outputs)
    assert found == Traffic(read + taken, sum(problem.sizes[v] for v in used), len(problem.nodes))


@pytest.mark.parametrize("seed", range(40))
def test_fusion_never_moves_more(seed: int) -> None:
    problem = random_training(seed)
    order = Rebuilding.of(problem).order(frozenset())
    assert traffic_of(problem, order).total <= traffic_of(problem, order, "none").total


@pytest.mark.parametrize("seed", range(40))
def test_recomputing_between_groups_never_moves_more(seed: int) -> None:
    problem = random_training(seed, 10)
    order = tuple(range(len(problem.nodes)))
    after = between_groups(problem, order)
    assert traffic_of(problem, after).total <= traffic_of(problem, order).total
    simulate(problem, lower(problem, after))  # and it can be run


def test_some_graphs_profit_from_recomputing_between_groups() -> None:
    graphs = [random_training(seed, 10) for seed in range(40)]
    assert any(len(between_groups(graph, range(len(graph.nodes)))) > len(graph.nodes) for graph in graphs)


def test_seen_fusion_goes_by_the_numbers() -> None:
    """Ops that the runtime fuses share a kernel whatever their kind; all others have their own."""
    nodes = tuple(replace(node, fused=7 if place in (1, 2) else -1) for place, node in enumerate(F.nodes))
    assert traffic_of(replace(F, nodes=nodes), range(8), "runtime").kernels == 7


def test_a_view_of_a_weight_is_the_weight() -> None:
    """Reading through a view costs what its base does, before and after the view is contracted away."""
    look = Node(0, (), (0,), views=((0, RESIDENT),), kind=Kind.VIEW, takes=((3, 40),))
    problem = Problem((look, Node(1, (0,), (1,), kind=P)), (40, 2), (1,))
    assert traffic_of(problem, (0, 1)) == Traffic(40, 2, 1)
    smaller = reduced(problem).problem
    assert len(smaller.nodes) == 1
    assert traffic_of(smaller, (0,)) == Traffic(40, 2, 1)
    assert runs_of(smaller, (0,)).bytes[-1, 3] == 40
