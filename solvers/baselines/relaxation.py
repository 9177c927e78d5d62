"""The bound that the linear relaxation of the paper's program proves: Checkmate (arXiv 1910.02653), appendix A."""

from __future__ import annotations

from solvers.baselines.paper_program import PaperProgram
from solvers.problem import Limits, Problem, Status
from solvers.scip import Settings, solve


def relaxation_bound(problem: Problem, budget: int, limits: Limits, no_stages: bool = False) -> float | None:
    """What no schedule that the program can express costs less than; None if not even fractions fit the budget."""
    paper = PaperProgram(problem, budget, stages=not no_stages)
    answer = solve(paper.program, Settings(limits.seconds, 0.0, limits.seed), relaxed=True, stopped=limits.stopped)
    if answer.status is Status.INFEASIBLE:
        return None
    return max(0.0, answer.bound * paper.cost_unit)
