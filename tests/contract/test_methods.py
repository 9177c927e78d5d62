"""Every method in the registry on every graph of the table, held to what it promises."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from remat_cli.notes.words import sentence
from solvers.problem import Limits, Problem, Progress, Status
from solvers.registry import METHODS
from solvers.schedule import Schedule, baseline, evaluate, schedule
from tests.ample import ample
from tests.contract.graphs import GRAPHS
from tests.sampling import pairwise
from tests.solvers.oracle import cheapest, least_peak
from tests.solvers.random_problems import random_problem

GAP = 1e-6
SHARES = ("least", "middle", "full")  # of what lies between the least peak of all and that without recomputation


def limits() -> Limits:
    return Limits(ample(), gap=GAP)


@cache
def budget_of(graph: str, share: str) -> int:
    problem = GRAPHS[graph]
    full = baseline(problem)[1].peak
    least = full if share == "full" else least_peak(problem)
    return least if share == "least" else (least + full) // 2


@cache
def optimum(graph: str, share: str) -> int | None:
    problem = GRAPHS[graph]
    if share == "full":
        return sum(node.cost for node in problem.nodes)
    return cheapest(problem, budget_of(graph, share))


def solved(method: str, problem: Problem, budget: int) -> tuple[Schedule, list[Progress]]:
    heard: list[Progress] = []
    return schedule(problem, budget, METHODS[method].load(), replace(limits(), report=heard.append)), heard


@pytest.mark.parametrize("method, graph, share", list(pairwise(list(METHODS), list(GRAPHS), SHARES)))
def test_keeps_its_promises(method: str, graph: str, share: str) -> None:
    problem, budget = GRAPHS[graph], budget_of(graph, share)
    found, heard = solved(method, problem, budget)
    if found.result.status.found:
        assert found.outcome is not None
        assert found.outcome.peak <= budget
        best = optimum(graph, share)
        assert best is not None
        assert found.outcome.cost >= best
        if found.result.bound is not None:
            assert found.result.bound <= found.outcome.cost + 1e-6
        if found.result.bound_any_order is not None:
            assert found.result.bound_any_order <= best + 1e-6
        if found.result.status is Status.OPTIMAL:
            assert found.outcome.cost <= best * (1 + GAP)
        if found.result.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL):
            assert found.result.bound is not None
            assert found.outcome.cost <= found.result.bound * (1 + GAP)
    if found.result.status is Status.INFEASIBLE:
        assert METHODS[method].proof
        assert cheapest(problem, budget, in_order=True) is None
    for progress in heard:
        if progress.order is not None:
            _, outcome = evaluate(problem, progress.order)
            assert outcome.peak <= budget
            assert outcome.cost == progress.cost


@pytest.mark.parametrize("graph", ["uneven chain", "u-net", "everything"])
@pytest.mark.parametrize("method", METHODS)
def test_same_question_same_answer(method: str, graph: str) -> None:
    budget = budget_of(graph, "middle")
    first, _ = solved(method, GRAPHS[graph], budget)
    second, _ = solved(method, GRAPHS[graph], budget)
    assert first.result == second.result


@pytest.mark.parametrize("method", METHODS)
def test_each_op_once_is_a_plan_wherever_it_fits(method: str) -> None:
    """A method that does not apply to a graph says so, but never that it knows of no plan where one is at hand."""
    problems = [*GRAPHS.values(), *(random_problem(Random(seed), 9) for seed in range(10))]
    for problem in problems:
        peak = baseline(problem)[1].peak
        found, _ = solved(method, problem, peak)
        assert found.result.status.found, (method, problem, found.result)
        assert found.outcome is not None
        assert found.outcome.peak <= peak


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_of_nothing_is_never_met(method: str) -> None:
    found, _ = solved(method, GRAPHS["residual"], 0)
    assert found.result.status in (Status.UNKNOWN, Status.INFEASIBLE)


@pytest.mark.parametrize("graph", ["residual", "diamond", "u-net", "dense", "transformer"])
@pytest.mark.parametrize("method", ["chen-sqrt", "chen-greedy", "griewank"])
def test_chain_methods_say_so_elsewhere(method: str, graph: str) -> None:
    found, _ = solved(method, GRAPHS[graph], baseline(GRAPHS[graph])[1].peak - 1)
    assert found.result.status is Status.UNKNOWN
    assert any("chain" in sentence(note) for note in found.result.notes)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.proof])
def test_anything_that_a_problem_can_say(method: str) -> None:
    """Random problems, none of whose ops is marked as backward, with effects, views apart, of every kind."""
    for seed in range(10):
        problem = random_problem(Random(seed), 9)
        budget = round(0.75 * baseline(problem)[1].peak)
        found, _ = solved(method, problem, budget)
        if found.result.status.found:
            assert found.outcome is not None
            assert found.outcome.peak <= budget
