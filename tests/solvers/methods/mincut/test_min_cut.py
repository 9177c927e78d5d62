"""min-cut as a method: monotone in the budget, within it, and never a random op twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from remat_cli.formats.problemfile import read
from solvers.methods.mincut.min_cut import solve
from solvers.methods.mincut.options import CUTTING, CutOptions
from solvers.methods.mincut.rebuild import FOREVER, Rebuilding
from solvers.methods.mincut.traffic import traffic_of
from solvers.notes import SolverNote
from solvers.plan import lower
from solvers.problem import Kind, Limits, Node, Problem, Status
from solvers.simulate import simulate
from tests.ample import ample
from tests.solvers.methods.mincut.training_graphs import random_training
from tests.solvers.oracle import cheapest

NETWORKS = Path(__file__).parents[3] / "data" / "networks"


def limits() -> Limits:
    return Limits(ample())


def swept(
    problem: Problem, budgets: list[int], options: CutOptions = CUTTING
) -> list[tuple[int, tuple[int, ...]] | None]:
    """Cost and order at each budget."""
    found: list[tuple[int, tuple[int, ...]] | None] = []
    for budget in budgets:
        answer = solve(problem, budget, limits(), options)
        assert answer.order is not None
        outcome = simulate(problem, lower(problem, answer.order))
        fits = outcome.peak <= budget
        assert fits == answer.status.found
        found.append((outcome.cost, answer.order) if fits else None)
    return found


def budgets_of(problem: Problem, many: int) -> list[int]:
    """From what nothing fits to what everything does."""
    peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
    return [peak * (many // 3 + step) // many for step in range(many - many // 3 + 1)]


def never_grows(prices: list[int | None]) -> bool:
    """No plan, then plans that get no dearer."""
    known = [price for price in prices if price is not None]
    return prices[len(prices) - len(known) :] == known == sorted(known, reverse=True)


def runs_once(problem: Problem, order: tuple[int, ...]) -> bool:
    return all(times == 1 or not problem.nodes[index].once for index, times in Counter(order).items())


@pytest.mark.parametrize("seed", range(12))
def test_more_memory_never_costs_more(seed: int) -> None:
    problem = random_training(seed, 10)
    found = swept(problem, budgets_of(problem, 30))
    assert never_grows([one[0] if one else None for one in found])
    assert all(runs_once(problem, one[1]) for one in found if one)
    assert found[-1] is not None
    assert found[-1][0] == sum(node.cost for node in problem.nodes)


@pytest.mark.parametrize("between_groups", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_more_memory_never_moves_more(seed: int, between_groups: bool) -> None:
    problem = random_training(seed, 10)
    options = CutOptions(objective="traffic", between_groups=between_groups)
    found = swept(problem, budgets_of(problem, 15), options)
    assert never_grows([traffic_of(problem, one[1]).total if one else None for one in found])
    assert all(runs_once(problem, one[1]) for one in found if one)


@pytest.mark.parametrize("name", ["vgg16", "unet", "mobilenet_fused"])
def test_monotone_on_networks(name: str) -> None:
    problem = read(NETWORKS / f"{name}.problem.json").problem
    found = swept(problem, budgets_of(problem, 24))
    assert never_grows([one[0] if one else None for one in found])


@pytest.mark.parametrize("name", ["unet", "segnet", "resnet50_fused"])
def test_close_to_the_optimum_of_networks(name: str) -> None:
    """Within four per cent of the known optimum at the budgets where it is known and recomputation is cheap."""
    problem = read(NETWORKS / f"{name}.problem.json").problem
    known = json.loads((NETWORKS / "expected.json").read_text())[name]
    budget = int(0.7 * known["baseline_peak"])
    found = swept(problem, [budget])[0]
    assert found is not None
    optimum = known["optimum_ratio_by_budget_fraction"]["0.7"]
    assert optimum - 1e-4 <= found[0] / known["baseline_cost"] <= optimum + 0.04


@pytest.mark.parametrize("seed", range(10))
def test_never_better_than_the_optimum(seed: int) -> None:
    problem = random_training(seed, 4)
    peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
    for budget in (peak * 3 // 4, peak):
        found, best = swept(problem, [budget])[0], cheapest(problem, budget)
        assert found is None or (best is not None and found[0] >= best)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_saved_the_order_is_legal(seed: int) -> None:
    random, problem = Random(seed), random_training(seed, 12, once=0.2)
    saved = frozenset(random.sample(range(12), 4))
    for reach in (FOREVER, 5, 1, 0):
        order = Rebuilding.of(problem).order(saved, reach)
        simulate(problem, lower(problem, order))
        assert runs_once(problem, order)


def test_the_paper_without_a_budget() -> None:
    """Compute-bound ops are kept, pointwise ones between them are not."""
    compute, point = Kind.COMPUTE, Kind.POINTWISE
    nodes = (
        Node(9, (), (0,), kind=compute),
        Node(1, (0,), (1,), kind=point),
        Node(1, (1,), (2,), kind=point),
        Node(9, (2,), (3,), kind=compute),
        Node(1, (3,), (4,), kind=point, backward=True),
        Node(1, (0, 1, 2, 4), (5,), kind=point, backward=True),
    )
    problem = Problem(nodes, (8,) * 6, (5,))
    answer = solve(problem, 1 << 40, limits(), CutOptions(objective="paper"))
    assert answer.order == (0, 1, 2, 3, 4, 1, 2, 5)


def test_without_a_backward_pass_it_says_so() -> None:
    answer = solve(Problem((Node(1, (), (0,)),), (1,), (0,)), 0, limits())
    assert answer.status is Status.UNKNOWN
    assert answer.notes[0].kind == SolverNote.NOTHING_BACKWARD
