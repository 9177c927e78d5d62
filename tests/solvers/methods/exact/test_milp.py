"""`milp` against the oracle on small random problems, and against optima found elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from time import sleep

import pytest

from solvers.clock import Clock
from solvers.methods.exact.improve import Improver, Turn
from solvers.methods.exact.milp import solve
from solvers.methods.exact.options import Known
from solvers.plan import lower
from solvers.problem import Limits, Node, Problem, Progress, Status
from solvers.simulate import simulate
from tests.ample import ample
from tests.sampling import few
from tests.solvers.oracle import cheapest, least_peak
from tests.solvers.random_problems import random_problem
from tests.solvers.test_oracle import unit_chain

DATA = Path(__file__).parents[3] / "data" / "networks"


def exactly() -> Limits:
    return Limits(ample(), gap=0.0)


def load(name: str) -> Problem:
    document = json.loads((DATA / f"{name}.problem.json").read_text())
    place = {value["name"]: index for index, value in enumerate(document["values"])}
    nodes = tuple(
        Node(
            node["cost"],
            tuple(place[read] for read in node["reads"]),
            tuple(place[write] for write in node["writes"]),
            backward=node["phase"] == "backward",
        )
        for node in document["nodes"]
    )
    sizes = tuple(value["bytes"] for value in document["values"])
    return Problem(nodes, sizes, tuple(place[output] for output in document["outputs"]))


def check(problem: Problem, budget: int) -> None:
    """Never below the optimum, never a bound above it, and right about what fits."""
    optimum = cheapest(problem, budget, in_order=True)
    result = solve(problem, budget, exactly())
    assert result.peak_bound is not None
    assert result.peak_bound <= least_peak(problem)
    if result.order is not None:
        outcome = simulate(problem, lower(problem, result.order))
    if result.status.found:
        assert optimum is not None
        assert outcome.peak <= budget
        assert outcome.cost >= optimum
        assert result.bound is not None
        assert result.bound <= optimum
        if result.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL):
            assert outcome.cost == optimum
    elif result.status is Status.INFEASIBLE:
        assert optimum is None
        assert result.peak_bound > budget or result.order is None or outcome.peak > budget


@pytest.mark.parametrize("plain", few([True, False], 1))
def test_random_problems_against_the_oracle(plain: bool) -> None:
    random = Random(11)
    for _ in range(25):
        problem = random_problem(random, random.randint(1, 7), plain=plain)
        least = least_peak(problem, in_order=True)
        for budget in (least - 1, least, least + random.randint(1, 4)):
            check(problem, budget)


@pytest.mark.parametrize("layers, budget, optimum", [(4, 3, 15), (4, 4, 11), (8, 4, 26), (8, 6, 21), (8, 10, 17)])
def test_unit_chains_reach_the_published_optimum(layers: int, budget: int, optimum: int) -> None:
    result = solve(unit_chain(layers), budget, Limits(ample(), gap=0.0))
    assert result.order is not None
    assert simulate(unit_chain(layers), lower(unit_chain(layers), result.order)).cost == optimum


def test_a_schedule_beyond_the_papers() -> None:
    """Budget 3 takes several runs of an op between two first computes."""
    result = solve(unit_chain(8), 3, Limits(ample()))
    assert result.status.found
    assert result.order is not None
    assert simulate(unit_chain(8), lower(unit_chain(8), result.order)).peak <= 3


@pytest.mark.parametrize("name, share, ratio", [("vgg16", 0.848, 1.00212), ("segnet", 0.5, 1.12234)])
def test_networks_reach_the_optimum_found_elsewhere(name: str, share: float, ratio: float) -> None:
    problem = load(name)
    plain = simulate(problem, lower(problem, range(len(problem.nodes))))
    result = solve(problem, int(plain.peak * share), Limits(ample(), gap=0.0005))
    assert result.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL)
    assert result.order is not None
    assert result.bound is not None
    assert simulate(problem, lower(problem, result.order)).cost == pytest.approx(plain.cost * ratio, rel=6e-4)
    assert result.bound <= plain.cost * (ratio + 1e-5)


def test_the_same_seed_gives_the_same_order() -> None:
    problem = load("mobilenet_fused")
    peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
    results = [solve(problem, peak * 6 // 10, Limits(ample(), seed=3)) for _ in range(2)]
    assert results[0] == results[1]
    assert results[0].status in (Status.OPTIMAL, Status.ORDER_OPTIMAL)


def test_nor_does_the_clock_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is done beside SCIP by the time it answers: annealing is as slow as can be."""
    problem = load("resnet50_fused")
    peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
    fast = solve(problem, peak * 46 // 100, Limits(ample()))
    attempt = Improver.attempt
    tries: list[int] = []

    def slow(self: Improver, turn: Turn) -> Turn:
        tries.append(turn.tries)
        sleep(0.02)
        return attempt(self, turn)

    monkeypatch.setattr(Improver, "attempt", slow)
    assert solve(problem, peak * 46 // 100, Limits(ample())) == fast
    assert len(tries) > 5, "hardly anything was tried"


def test_a_known_plan_is_never_lost() -> None:
    """A plan for a smaller budget is a candidate for a larger one, however little time there is."""
    problem = load("segnet")
    peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
    smaller = solve(problem, peak // 2, Limits(ample()))
    assert smaller.order is not None
    heard: list[Progress] = []
    larger = solve(problem, peak // 2 + 1, Limits(Clock(0.0), report=heard.append), Known((smaller.order,)))
    assert larger.order is not None
    cost = simulate(problem, lower(problem, larger.order)).cost
    assert cost <= simulate(problem, lower(problem, smaller.order)).cost
    assert heard[0].cost == cost


def test_stopping_keeps_the_best_plan_and_its_bound() -> None:
    problem = load("unet")
    plain = simulate(problem, lower(problem, range(len(problem.nodes))))
    heard: list[Progress] = []
    result = solve(
        problem, plain.peak // 2, Limits(ample(stopped=lambda: len(heard) > 2), gap=0.0, report=heard.append)
    )
    assert result.status is Status.FEASIBLE
    assert result.order is not None
    assert simulate(problem, lower(problem, result.order)).peak <= plain.peak // 2
    assert result.bound is not None


def test_small_and_strange_problems() -> None:
    lone = Problem((Node(3, (), (0,)),), (5,), (0,), resident=2)
    assert solve(lone, 7, exactly()).status in (Status.OPTIMAL, Status.ORDER_OPTIMAL)
    assert solve(lone, 6, exactly()).status is Status.INFEASIBLE
    assert solve(lone, 0, exactly()).peak_bound == 7
    silent = Problem((Node(0, (), ()), Node(0, (), ())), (), ())
    assert solve(silent, 0, exactly()).status in (Status.OPTIMAL, Status.ORDER_OPTIMAL)
    weightless = Problem((Node(1, (), (0,)), Node(1, (0,), (1,))), (0, 0), (1,))
    assert solve(weightless, 0, exactly()).order == (0, 1)
