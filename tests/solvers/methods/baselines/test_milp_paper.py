"""The paper's program, against the paper's figures, shortest paths, and itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remat_cli.formats import problemfile
from solvers.methods.baselines.milp_paper import solve
from solvers.methods.baselines.options import PaperForm
from solvers.methods.baselines.paper_program import PaperProgram
from solvers.methods.baselines.paper_start import start_of
from solvers.methods.baselines.relaxation import relaxation_bound
from solvers.notes import SolverNote
from solvers.problem import Limits, Problem, Status
from solvers.schedule import baseline, evaluate
from tests.ample import ample
from tests.contract.graphs import GRAPHS, random_step
from tests.solvers.methods.baselines.chains import reversed_chain
from tests.solvers.oracle import cheapest, least_peak

DATA = Path(__file__).parents[3] / "data" / "checkmate"


def limits() -> Limits:
    return Limits(ample(), gap=0.0)


def unit_chain(layers: int) -> Problem:
    return problemfile.read(DATA / f"linear{layers}.problem.json").problem


def test_integrality_gaps_of_appendix_a() -> None:
    problem = unit_chain(8)
    staged = relaxation_bound(problem, 4, limits())
    unpartitioned = relaxation_bound(problem, 4, limits(), no_stages=True)
    assert staged is not None
    assert unpartitioned is not None
    assert 26 / staged.cost == pytest.approx(1.18, abs=0.005)
    assert 26 / unpartitioned.cost == pytest.approx(21.56, abs=0.005)


def test_fractions_that_do_not_fit() -> None:
    assert relaxation_bound(unit_chain(8), 0, limits()) is None


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("budget", [3, 4, 5, 6])
def test_unit_chain_of_four(budget: int, splits: int) -> None:
    known = json.loads((DATA / "linear4.expected.json").read_text())
    found = solve(unit_chain(4), budget, limits(), PaperForm(splits=splits))
    assert found.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL)
    assert found.order is not None
    _, outcome = evaluate(unit_chain(4), found.order)
    assert outcome.peak <= budget
    assert outcome.cost == known["optimum by budget, over all orders with repeats"][str(budget)]


@pytest.mark.parametrize("seed", range(6))
def test_without_free_of_what_was_just_made(seed: int) -> None:
    """A smaller program with the same optimum."""
    problem = random_step(seed, 4)
    budget = (least_peak(problem, in_order=True) + baseline(problem)[1].peak) // 2
    whole, less = (PaperProgram(problem, budget, eliminate=eliminate) for eliminate in (False, True))
    assert len(less.FREE) < len(whole.FREE)
    found = [solve(problem, budget, limits(), PaperForm(eliminate=eliminate)) for eliminate in (False, True)]
    costs = [one.order and evaluate(problem, one.order)[1].cost for one in found]
    assert costs[0] == costs[1]
    assert found[0].status is found[1].status


def test_without_stages() -> None:
    """Nothing says when an op is first computed, but the optimum is the same."""
    problem = reversed_chain(3)
    budget = baseline(problem)[1].peak - 1
    found = solve(problem, budget, limits(), PaperForm(no_stages=True))
    assert found.order is not None
    assert evaluate(problem, found.order)[1].cost == cheapest(problem, budget)


@pytest.mark.parametrize("seed", range(8))
def test_optimum_of_its_class(seed: int) -> None:
    """Never below the optimum over all orders of first computes as given; with splits enough, that optimum."""
    problem = random_step(seed, 4)
    budget = (least_peak(problem, in_order=True) + baseline(problem)[1].peak) // 2
    best = cheapest(problem, budget, in_order=True)
    assert best is not None
    costs = []
    for splits in (1, 3):
        found = solve(problem, budget, limits(), PaperForm(splits=splits))
        assert found.order is not None
        costs.append(
            evaluate(problem, found.order)[1].cost if found.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL) else None
        )
    assert costs[1] == best
    assert costs[0] is None or costs[0] >= best


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_known_order_solves_the_program(graph: str) -> None:
    """Every row holds for the start that an order makes, at the order's cost; in-place writes are not counted on."""
    problem = GRAPHS[graph]
    order = range(len(problem.nodes))
    paper = PaperProgram(problem, baseline(problem)[1].peak)
    values = start_of(paper, order)
    program = paper.program
    for columns, coefficients, low, high in program.rows:
        total = sum(values[column] * coefficient for column, coefficient in zip(columns, coefficients, strict=True))
        assert low - 1e-9 <= total <= high + 1e-9
    for value, low, high in zip(values, program.lows, program.highs, strict=True):
        assert low <= value <= high
    cost = sum(value * cost for value, cost in zip(values, program.costs, strict=True)) * paper.cost_unit
    assert cost == sum(node.cost for node in problem.nodes)
    assert paper.order(values) == list(order)


def test_too_large_to_build_still_gets_a_plan() -> None:
    problem = random_step(3, 250)
    _, plain = baseline(problem)
    found = solve(problem, round(0.95 * plain.peak), limits())
    assert found.status is Status.FEASIBLE
    assert any(note.kind == SolverNote.PROGRAM_TOO_LARGE for note in found.notes)


def test_where_the_paper_is_too_large_the_bound_says_whose_it_is() -> None:
    """It is no trivial one: some of this must be computed again."""
    problem = random_step(3, 250)
    _, plain = baseline(problem)
    found = relaxation_bound(problem, round(0.7 * plain.peak), limits())
    assert found is not None
    assert found.cost > 1.001 * plain.cost
    assert found.note.kind == SolverNote.PROGRAM_OF_CUTS
