"""`auto` against the oracle over all orders, against `milp`, and against itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from remat_cli.formats import problemfile
from solvers.clock import Clock
from solvers.methods.auto.auto import solve
from solvers.methods.auto.within import list_first_computes
from solvers.methods.exact import milp
from solvers.problem import Limits, Problem, Progress, Status
from solvers.schedule import baseline, evaluate, schedule
from tests.ample import ample
from tests.contract.graphs import random_step
from tests.solvers.oracle import cheapest
from tests.solvers.random_problems import random_problem

NETWORKS = Path(__file__).parents[3] / "data" / "networks"


def limits(gap: float = 1e-6) -> Limits:
    return Limits(ample(), gap=gap)


@pytest.mark.parametrize("seed", range(12))
def test_never_below_the_optimum_over_all_orders(seed: int) -> None:
    problem = random_problem(Random(seed), 6, plain=seed % 2 == 0)
    budget = round(0.75 * baseline(problem)[1].peak)
    least, found = cheapest(problem, budget), solve(problem, budget, limits())
    if found.status is Status.INFEASIBLE:
        assert least is None
    if found.status.found:
        assert least is not None
        assert found.order is not None
        outcome = evaluate(problem, found.order)[1]
        assert outcome.peak <= budget
        assert outcome.cost >= least
        assert found.bound_any_order is not None
        assert found.bound_any_order <= least
        assert found.status is not Status.OPTIMAL or outcome.cost == least


@pytest.mark.parametrize("seed", range(3, 9))
def test_finds_the_optimum_over_all_orders_of_training_steps(seed: int) -> None:
    problem = random_step(seed)
    budget = round(0.8 * baseline(problem)[1].peak)
    least, found = cheapest(problem, budget), solve(problem, budget, limits())
    assert (found.order is not None and found.status.found) == (least is not None)
    if found.status.found and found.order is not None:
        assert evaluate(problem, found.order)[1].cost == least


def test_a_network_is_proved_over_all_orders() -> None:
    problem = problemfile.read(NETWORKS / "segnet.problem.json").problem
    plain = baseline(problem)[1]
    found = schedule(problem, plain.peak // 2, solve, limits(0.001))
    assert found.outcome is not None
    assert found.result.status is Status.OPTIMAL
    assert found.outcome.cost <= 1.1226 * plain.cost  # in the file's order the optimum is 1.12234 times that
    assert found.outcome.cost <= 1.001 * (found.result.bound_any_order or 0)


def test_the_same_again_and_never_worse_than_in_the_given_order() -> None:
    problem = problemfile.read(NETWORKS / "mobilenet_fused.problem.json").problem
    budget = round(0.55 * baseline(problem)[1].peak)
    first, again = (schedule(problem, budget, solve, limits(0.001)) for _ in range(2))
    assert first.result == again.result
    within = schedule(problem, budget, milp.solve, limits(0.001))
    assert first.outcome is not None
    assert within.outcome is not None
    assert first.outcome.cost <= 1.001 * within.outcome.cost


def test_what_is_heard_only_gets_better() -> None:
    problem = problemfile.read(NETWORKS / "unet.problem.json").problem
    heard: list[Progress] = []
    schedule(problem, round(0.7 * baseline(problem)[1].peak), solve, replace(limits(0.001), report=heard.append))
    costs = [progress.cost for progress in heard if progress.cost is not None]
    assert costs == sorted(costs, reverse=True)
    assert all(progress.order is not None for progress in heard if progress.cost is not None)
    bounds = [progress.bound for progress in heard if progress.bound is not None]
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0]


def test_milp_says_that_its_optimum_is_one_of_an_order() -> None:
    said = set()
    for seed in range(3, 9):
        problem = random_step(seed)
        budget = round(0.85 * baseline(problem)[1].peak)
        found = milp.solve(problem, budget, limits())
        if not found.status.found or found.order is None:
            continue
        cost, total = evaluate(problem, found.order)[1].cost, sum(node.cost for node in problem.nodes)
        assert found.bound_any_order == total
        assert found.status is (Status.OPTIMAL if cost == total else Status.ORDER_OPTIMAL)
        assert cost == cheapest(problem, budget, in_order=True)
        said.add(found.status)
    assert Status.ORDER_OPTIMAL in said


def test_first_computes() -> None:
    assert list_first_computes(np.array([2, 0, 2, 1, 0])) == (2, 0, 1)


def test_no_time_at_all_still_answers() -> None:
    problem: Problem = random_step(5)
    found = solve(problem, baseline(problem)[1].peak - 1, Limits(Clock(0.0)))
    assert found.status in (Status.UNKNOWN, Status.FEASIBLE)
