"""Rounded relaxations, against published optima and bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from remat_cli.formats import problemfile
from solvers.methods.baselines import lp_walks
from solvers.methods.baselines.options import Walking
from solvers.methods.baselines.relaxation import relax_improved, relax_paper
from solvers.orders.arrays import arrays_of
from solvers.orders.polish import polish
from solvers.problem import Limits, Problem, Status
from solvers.schedule import baseline, evaluate, schedule
from tests.ample import ample
from tests.contract.graphs import GRAPHS, chain
from tests.sampling import few
from tests.solvers.oracle import cheapest

DATA = Path(__file__).parents[3] / "data"


def limits() -> Limits:
    return Limits(ample())


@cache
def network(name: str) -> Problem:
    return problemfile.read(DATA / "networks" / f"{name}.problem.json").problem


OPTIMA = [
    (name, float(share), ratio)
    for name, known in json.loads((DATA / "networks" / "expected.json").read_text()).items()
    for share, ratio in known.get("optimum_ratio_by_budget_fraction", {}).items()
    if name in ("vgg16", "mobilenet_fused", "unet")
]


@pytest.mark.parametrize("name, share, ratio", OPTIMA)
def test_within_three_percent_of_the_optimum(name: str, share: float, ratio: float) -> None:
    problem = network(name)
    _, plain = baseline(problem)
    found = schedule(problem, int(plain.peak * share), lp_walks.solve, limits())
    assert found.outcome is not None
    assert found.result.bound is not None
    assert found.result.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL, Status.FEASIBLE)
    assert ratio - 1e-3 <= found.outcome.cost / plain.cost <= 1.03 * ratio
    assert found.result.bound / plain.cost <= ratio + 1e-5


def test_the_improved_relaxation_of_u_net_is_far_better() -> None:
    """1.016 as printed, 1.134 improved, 1.158 the optimum; the first takes minutes and is left out."""
    problem = network("unet")
    _, plain = baseline(problem)
    budget = plain.peak // 2
    relaxed = relax_improved(problem, budget, limits(), budget)
    assert relaxed is not None
    assert relaxed.bound / plain.cost == pytest.approx(1.134, abs=1e-3)


@pytest.mark.parametrize("graph", few(["uneven chain", "u-net", "random 1", "everything"], 1))
@pytest.mark.parametrize("lp", ["paper", "improved"])
def test_bounds_are_bounds(graph: str, lp: str) -> None:
    problem = GRAPHS[graph]
    full = baseline(problem)[1].peak
    for budget in (full - 1, full - 3):
        best = cheapest(problem, budget, in_order=True)
        relaxed = relax_paper(problem, budget, limits()) if lp == "paper" else None
        if lp == "improved":
            relaxed = relax_improved(problem, budget, limits(), budget)
        if best is not None and lp == "improved":
            assert relaxed is not None
            assert relaxed.bound <= best + 1e-6
        if relaxed is not None:
            for whole in (relaxed.fractions > 0.5, np.ones(len(relaxed.fractions), bool)):
                evaluate(problem, relaxed.order_of(whole))


def test_random_rounding_follows_the_seed() -> None:
    problem = chain(9)
    answers = [
        lp_walks.solve(problem, 6, replace(limits(), seed=seed), Walking(rounding="randomized", samples=20))
        for seed in (1, 1, 2)
    ]
    assert answers[0] == answers[1]
    assert all(answer.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL, Status.FEASIBLE) for answer in answers)


def test_memory_left_over_is_spent() -> None:
    """With room for all, nothing is recomputed; with room for one copy more, the dearest stays."""
    problem = GRAPHS["uneven chain"]
    again = [0, 1, 0, 2, 1, 3, 4, 5, 6, 7, 8, 9]
    arrays = arrays_of(problem)
    spent = polish(arrays, np.array(again), baseline(problem)[1].peak, lambda: False)
    assert spent.tolist() == list(range(10))
