"""`lp-rounding`: Checkmate's two-phase rounding, Algorithm 2 as printed (arXiv 1910.02653, section 5).

The linear relaxation of the program (1) to (8) is solved with (1 - epsilon) of the budget, epsilon being 0.1. S is S*
rounded at 0.5; or, randomized, each S_{t,i} is 1 with probability S*_{t,i}, some number of times. R is then the least
that is right for that S, and FREE follows. Nothing makes the result fit: what it needs is said.

Invariant: no other heuristic's schedule is ever the answer; where the rounding does not fit and each op once does, that
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

import numpy as np

from solvers.methods.baselines.options import ROUNDING, Rounding
from solvers.methods.baselines.paper_program import too_large
from solvers.methods.baselines.relaxation import Relaxed, relax_paper
from solvers.notes import Note, SolverNote
from solvers.orders.best import Best, Weighed, refuse
from solvers.problem import Limits, Problem, Result

THRESHOLD = 0.5


def solve(problem: Problem, budget: int, limits: Limits, options: Rounding = ROUNDING) -> Result:
    if too_large(problem):
        return refuse(problem, budget, limits, Note(SolverNote.LINEAR_PROGRAM_TOO_LARGE))
    smaller = budget - budget * options.allowance // 100
    relaxed = relax_paper(problem, smaller, limits)
    if relaxed is None:
        return refuse(problem, budget, limits, Note(SolverNote.LINEAR_PROGRAM_UNSOLVED, (smaller,)))
    if options.rounding == "deterministic":
        return _rounded(problem, budget, limits, [relaxed.fractions > THRESHOLD], relaxed)
    random = np.random.default_rng(limits.seed)
    draws = [random.random(len(relaxed.fractions)) < relaxed.fractions for _ in range(options.samples)]
    return _rounded(problem, budget, limits, draws, relaxed)


def _rounded(problem: Problem, budget: int, limits: Limits, wholes: Sequence[np.ndarray], relaxed: Relaxed) -> Result:
    best = Best(problem, budget, limits)
    found = [one for whole in wholes if (one := best.offer(relaxed.order_of(whole), "rounding")) is not None]
    result = best.result()
    return replace(result, notes=(_said(found, budget), *result.notes))


@dataclass(frozen=True, slots=True)
class SampleSpread:
    """The mean and standard deviation of some samples (Figure 7's)."""

    mean: float
    deviation: float

    @staticmethod
    def of(samples: Sequence[int]) -> SampleSpread:
        return SampleSpread(fmean(samples), pstdev(samples))


def _said(found: Sequence[Weighed], budget: int) -> Note:
    """The note on the rounding's results, and by how much they exceed the budget."""
    if len(found) == 1:
        figures = THRESHOLD, found[0].cost, found[0].peak
        over = found[0].peak - budget
        if over > 0:
            return Note(SolverNote.ROUNDED_OVER, (*figures, over, over / max(budget, 1)))
        return Note(SolverNote.ROUNDED, figures)
    fitting = sum(one.peak <= budget for one in found)
    times, peaks = SampleSpread.of([one.cost for one in found]), SampleSpread.of([one.peak for one in found])
    values = len(found), times.mean, times.deviation, peaks.mean, peaks.deviation, fitting
    return Note(SolverNote.ROUNDED_SAMPLES, values)
