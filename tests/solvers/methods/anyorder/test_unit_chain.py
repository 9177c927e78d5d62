"""Unit chains: the bound is the optimum, known by searching all schedules of short ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from remat_cli.formats import problemfile
from solvers.methods.anyorder.unit_chain import reversal_bound
from solvers.methods.auto.auto import solve
from solvers.problem import Limits, Node, Problem, Status
from tests.oracle.exact import optimum

DATA = Path(__file__).parents[3] / "data" / "checkmate"


def unit_chain(length: int, cost: int = 1, size: int = 1) -> Problem:
    forward = [Node(cost, (index - 1,) if index else (), (index,)) for index in range(length)]
    turn = Node(cost, (length - 1,), (length,))
    back = [Node(cost, (length - 1 - k, length + k), (length + 1 + k,)) for k in range(length)]
    return Problem((*forward, turn, *back), (size,) * (2 * length + 1), (2 * length,))


@pytest.mark.parametrize("length", range(1, 7))
def test_the_bound_is_the_least_cost_of_all_schedules(length: int) -> None:
    problem = unit_chain(length, cost=3, size=2)
    for room in range(3, length + 4):
        assert reversal_bound(problem, 2 * room + 1) == optimum(problem, 2 * room + 1, any_order=True), room


@pytest.mark.parametrize("name", ["linear4", "linear8"])
def test_the_bound_is_the_known_optimum(name: str) -> None:
    problem = problemfile.read(DATA / f"{name}.problem.json").problem
    known = json.loads((DATA / f"{name}.expected.json").read_text())["optimum by budget, over all orders with repeats"]
    assert {budget: reversal_bound(problem, int(budget)) for budget in known} == known


def test_other_graphs_have_no_such_bound() -> None:
    problem = unit_chain(5)
    other = [
        replace(problem, sizes=(2, *problem.sizes[1:])),
        replace(problem, outputs=(4, 10)),
        replace(problem, nodes=(replace(problem.nodes[0], cost=2), *problem.nodes[1:])),
        replace(problem, nodes=(*problem.nodes[:-1], replace(problem.nodes[-1], workspace=1))),
        replace(problem, nodes=(*problem.nodes[:7], replace(problem.nodes[7], reads=(6,)), *problem.nodes[8:])),
    ]
    assert [reversal_bound(each, 4) for each in other] == [None] * len(other)


def test_a_chain_of_32_layers_is_proved_at_a_quarter() -> None:
    found = solve(unit_chain(32), 8, Limits(gap=0.0))
    assert (found.status, found.bound_any_order) == (Status.OPTIMAL, 96)
