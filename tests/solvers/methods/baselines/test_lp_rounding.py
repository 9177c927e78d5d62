"""Algorithm 2 against a literal reading of it: matrices, loops until nothing is missing, and no thought for speed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from remat_cli.formats.problemfile import read
from solvers.methods.baselines.lp_rounding import solve
from solvers.methods.baselines.options import Rounding
from solvers.methods.baselines.relaxation import relax_paper
from solvers.notes import SolverNote
from solvers.orders.arrays import arrays_of
from solvers.orders.measure import trim
from solvers.problem import Limits, Problem, Status
from solvers.registry import METHODS
from solvers.schedule import baseline, evaluate
from tests.ample import ample
from tests.contract.graphs import chain, random_step

DATA = Path(__file__).parents[3] / "data" / "checkmate"


def limits() -> Limits:
    return Limits(ample())


def algorithm_2(problem: Problem, kept: dict[tuple[int, int], bool]) -> list[int]:
    """`kept[t, i]` is S^int; one value for each op here. R^int starts as the identity."""
    count = len(problem.nodes)
    runs = np.eye(count, dtype=bool)
    held = np.zeros((count, count), bool)
    for (stage, value), whole in kept.items():
        held[stage, value] = whole
    for value in problem.outputs:
        held[value + 1 :, value] = True
    for stage in range(1, count):
        for op in range(count):
            if held[stage, op] and not (runs[stage - 1, op] or held[stage - 1, op]):
                runs[stage - 1, op] = True
    changed = True
    while changed:
        changed = False
        for stage in range(count):
            for op in range(count):
                for value in problem.nodes[op].reads if runs[stage, op] else ():
                    if not (runs[stage, value] or held[stage, value]):
                        runs[stage, value] = changed = True
    return [op for stage in range(count) for op in range(count) if runs[stage, op]]


@pytest.mark.parametrize("share", [0.7, 0.85, 1.0])
@pytest.mark.parametrize("problem", [chain(6), random_step(1), random_step(2), random_step(5, 6)])
def test_as_printed(problem: Problem, share: float) -> None:
    from solvers.methods.baselines.paper_program import PaperProgram

    budget = int(share * baseline(problem)[1].peak)
    smaller = budget - budget // 10
    relaxed = relax_paper(problem, smaller, limits())
    found = solve(problem, budget, limits())
    if relaxed is None:
        assert found.status is Status.UNKNOWN
        assert found.notes[0].kind == SolverNote.LINEAR_PROGRAM_UNSOLVED
        return
    places = list(PaperProgram(problem, smaller).S)
    kept = dict(zip(places, (relaxed.fractions > 0.5).tolist(), strict=True))
    literal = trim(arrays_of(problem), np.array(algorithm_2(problem, kept)))
    assert found.order == tuple(literal.tolist())
    peak = evaluate(problem, found.order)[1].peak
    assert (found.status is Status.UNKNOWN) == (peak > budget)
    assert (found.notes[0].kind == SolverNote.ROUNDED_OVER) == (peak > budget)


def test_random_samples_have_a_mean_and_a_spread() -> None:
    problem = read(DATA / "linear8.problem.json").problem
    options = Rounding(rounding="randomized", samples=20)
    found = solve(problem, 6, limits(), options)
    assert found == solve(problem, 6, limits(), options)
    assert found.notes[0].kind == SolverNote.ROUNDED_SAMPLES
    assert found.notes[0].values[0] == 20


def test_too_large_says_so() -> None:
    problem = random_step(3, 250)
    found = solve(problem, baseline(problem)[1].peak - 1, limits())
    assert found.status is Status.UNKNOWN
    assert found.notes[0].kind == SolverNote.LINEAR_PROGRAM_TOO_LARGE


def test_a_method_under_its_own_name() -> None:
    assert METHODS["lp-rounding"].load()(chain(9), 6, limits()).notes[0].values[0] == 0.5
