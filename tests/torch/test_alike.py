"""Orders brought near to that of the graph, judged by the simulation and by what each compute reads."""

from __future__ import annotations

import random

import pytest

from remat_cli.torch.alike import alike
from solvers.problem import Node, Problem
from solvers.schedule import evaluate
from tests.solvers.random_problems import random_order, random_problem

Ran = tuple[int, int]  # an op, and which of its computes


def reads(problem: Problem, order: tuple[int, ...]) -> dict[Ran, dict[int, Ran]]:
    """Which compute made each value that a compute reads."""
    found: dict[Ran, dict[int, Ran]] = {}
    newest: dict[int, Ran] = {}
    count = dict.fromkeys(order, 0)
    for op in order:
        node = problem.nodes[op]
        found[op, count[op]] = {value: newest[value] for value in node.reads}
        newest.update(dict.fromkeys(node.writes, (op, count[op])))
        count[op] += 1
    return found


@pytest.mark.parametrize("seed", range(200))
def test_each_compute_reads_what_it_did_and_the_peak_is_no_higher(seed: int) -> None:
    draws = random.Random(seed)
    problem = random_problem(draws, 14, plain=seed % 2 == 0)
    order = random_order(draws, problem, 6)
    found = alike(problem, order)
    assert reads(problem, found) == reads(problem, order)
    assert evaluate(problem, found)[1].peak <= evaluate(problem, order)[1].peak
    assert evaluate(problem, found)[1].cost == evaluate(problem, order)[1].cost


def layers(count: int) -> Problem:
    """Each layer reads the value before it by two ops, and a third reads what they made."""
    nodes, sizes = [Node(1, (), (0,))], [8]
    for _ in range(count):
        before, new = len(sizes) - 1, len(sizes)
        nodes += [Node(1, (before,), (new,)), Node(1, (before,), (new + 1,)), Node(1, (new, new + 1), (new + 2,))]
        sizes += [8, 8, 8]
    return Problem(tuple(nodes), tuple(sizes), outputs=(len(sizes) - 1,))


def test_layers_that_a_search_placed_in_different_ways_are_placed_alike() -> None:
    assert alike(layers(3), (0, 2, 1, 3, 4, 5, 6, 8, 7, 9)) == tuple(range(10))


def test_what_is_computed_again_comes_right_before_the_op_that_asked_for_it() -> None:
    problem = Problem(
        nodes=(Node(1, (), (0,)), Node(1, (0,), (1,)), Node(1, (1,), (2,)), Node(1, (2,), (3,)), Node(1, (0, 3), (4,))),
        sizes=(1, 8, 8, 8, 1),
        outputs=(4,),
    )
    assert alike(problem, (0, 1, 0, 2, 3, 4)) == (0, 1, 2, 3, 0, 4)


def test_an_exchange_that_would_hold_more_than_the_peak_is_not_made() -> None:
    """The second op makes much, so what the third is for has to be gone before."""
    problem = Problem(
        nodes=(Node(1, (), (0,)), Node(1, (0,), (1,)), Node(1, (0,), (2,), workspace=2), Node(1, (1, 2), (3,))),
        sizes=(1, 9, 1, 1),
        outputs=(3,),
    )
    assert evaluate(problem, (0, 1, 2, 3))[1].peak > evaluate(problem, (0, 2, 1, 3))[1].peak
    assert alike(problem, (0, 2, 1, 3)) == (0, 2, 1, 3)
