"""`milp-paper`: Checkmate's program as printed (arXiv 1910.02653, section 4), to be compared with; slow.

Invariant: bounds and optimality hold for schedules of the paper's form: first computes in the given order, and no op
more than `splits` times between two of them. Finding none of that form proves nothing about others.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf

from solvers.methods.baselines import evict
from solvers.methods.baselines.chen import linearized_greedy
from solvers.methods.baselines.ends import recompute_all
from solvers.methods.baselines.options import PAPER_FORM, PaperForm
from solvers.methods.baselines.paper_program import PaperProgram, too_large
from solvers.methods.baselines.paper_start import start_of
from solvers.notes import Note, SolverNote
from solvers.orders.best import Best
from solvers.problem import Limits, Problem, Result, Status
from solvers.scip import Settings
from solvers.scip import solve as solve_program


def solve(problem: Problem, budget: int, limits: Limits, options: PaperForm = PAPER_FORM) -> Result:
    splits, no_stages = options.splits, options.no_stages
    best = Best(problem, budget, limits)
    _offer_heuristics(best)
    if too_large(problem, not no_stages, splits) or best.over():
        return best.result(notes=(Note(SolverNote.PROGRAM_TOO_LARGE),))
    paper = PaperProgram(problem, budget, stages=not no_stages, splits=splits, eliminate=options.eliminate)
    start = start_of(paper, best.fitting.steps()) if best.fitting and not no_stages else None
    settings = Settings(limits.clock, limits.gap, limits.seed, verbose=limits.verbose)
    answer = solve_program(paper.program, settings, [] if start is None else [start])
    note = _form(splits, no_stages)
    if answer.status is Status.INFEASIBLE:
        return replace(best.result(), notes=(Note(SolverNote.NO_PAPER_SCHEDULE), note))
    if answer.values is not None:
        best.offer(paper.order(answer.values), "the program")
    bound = ceil(answer.bound * paper.cost_unit) if answer.bound > -inf else None  # costs are integers
    result = best.result(bound, (note,))
    if result.status is Status.FEASIBLE and answer.status is Status.OPTIMAL:
        return replace(result, status=Status.ORDER_OPTIMAL)
    return result


def _offer_heuristics(best: Best) -> None:
    """Offer schedules to start from, so that large graphs get a plan though the program is out of reach."""
    for method in (linearized_greedy, evict.solve, recompute_all):
        order = method(best.problem, best.budget, best.limits.share(1 / 4)).order
        if order is not None:
            best.offer(order, "walks")


def _form(splits: int, no_stages: bool) -> Note:
    if no_stages:
        return Note(SolverNote.BOUND_WITHOUT_STAGES)
    return Note(SolverNote.BOUND_OF_PAPER_FORM, ("once" if splits == 1 else f"{splits} times",))
