"""Linear relaxations of Checkmate's program, and how their S is made whole: the paper's own and the improved one.

The paper's is equations (1) to (8) (arXiv 1910.02653, appendix A). The improved one is that of the cuts in time, with
as many boundaries as are affordable. It has no FREE and no U, and its bound is tighter and holds for more schedules.

Invariant: `bound` is proved, for schedules that first compute the ops in the given order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from solvers.methods.baselines.from_checkpoints import cheapest_order, nothing_kept
from solvers.methods.baselines.paper_program import PaperProgram, too_large
from solvers.methods.exact.cuts import build_cuts, expand_cuts, windows_in_order
from solvers.methods.exact.grouped import GroupedProgram
from solvers.methods.exact.relaxation import hints_of
from solvers.notes import Note, SolverNote
from solvers.orders.arrays import arrays_of
from solvers.orders.bounds import PossibleCosts, cost_bound
from solvers.orders.evict import Hints
from solvers.orders.measure import memory_of
from solvers.problem import Limits, Problem, Status
from solvers.scip import Program, ProgramAnswer, Settings, solve

Whole = NDArray[np.bool_]  # a truth value for each fraction
LARGEST = 12_000  # variables of the improved relaxation, about: as many are solved in a few seconds
FEWEST = 10  # boundaries of the improved relaxation, however large the graph


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A solved relaxation: its S in one row, and the order that any choice of whole S gives."""

    bound: float
    fractions: NDArray[np.float64]
    order_of: Callable[[Whole], list[int]]  # the cheapest recomputation for that S
    hints_of: Callable[[Whole], Hints]  # the hints of that S for an eviction walk


@dataclass(frozen=True, slots=True)
class Bound:
    """The cost that no schedule goes below, and the program whose relaxation proves it."""

    cost: float
    note: Note


def relaxation_bound(problem: Problem, budget: int, limits: Limits, no_stages: bool = False) -> Bound | None:
    """The cost that no schedule of the paper's program goes below; None if not even fractions fit.

    Where that program is too large to build, the improved one stands in. Where none is solved in time, the bound is the
    cost of every op once; the note says so.
    """
    if too_large(problem, not no_stages):
        return _improved_bound(problem, budget, limits)
    paper = PaperProgram(problem, budget, stages=not no_stages)
    answer = _solve(paper.program, limits)
    if answer.status is Status.INFEASIBLE:
        return None
    if answer.bound == -inf:
        return Bound(cost_bound(problem), Note(SolverNote.PROGRAM_UNSOLVED))
    return Bound(answer.bound * paper.cost_unit, Note(SolverNote.PAPER_PROGRAM))


def _improved_bound(problem: Problem, budget: int, limits: Limits) -> Bound | None:
    cuts, costs = _improved(problem, budget, budget), PossibleCosts.of(problem)
    answer = _solve(cuts.program, limits)
    if answer.status is Status.INFEASIBLE:
        return None
    if answer.bound == -inf:
        return Bound(costs.total, Note(SolverNote.PROGRAM_OF_CUTS_UNSOLVED))
    note = Note(SolverNote.PROGRAM_OF_CUTS, (len(cuts.windows.pivots),))
    return Bound(costs.total + answer.bound * costs.scale, note)


def _improved(problem: Problem, budget: int, full: int) -> GroupedProgram:
    """`full`: the budget whose excess places the boundaries."""
    ended = problem.ended()
    windows = windows_in_order(ended, _boundaries(problem, full))
    return build_cuts(ended, budget, windows, frozenset(), PossibleCosts.of(problem).scale)


def relax_paper(problem: Problem, budget: int, limits: Limits) -> Relaxed | None:
    """None if there is no solution, or none in time, or the program is too large to build."""
    if too_large(problem):
        return None
    paper = PaperProgram(problem, budget)
    answer = _solve(paper.program, limits)
    if answer.values is None:
        return None
    stages, values = np.array(list(paper.S), dtype=np.int64).reshape(-1, 2).T
    last = len(problem.nodes) - 1

    def kept(whole: Whole) -> Whole:
        rows = nothing_kept(problem)
        rows[stages, values] = whole
        return rows

    return Relaxed(
        bound=answer.bound * paper.cost_unit,
        fractions=np.array([answer.values[column] for column in paper.S.values()]),
        order_of=lambda whole: cheapest_order(problem, kept(whole)),
        hints_of=lambda whole: Hints(
            np.minimum(np.arange(last + 2), last), np.vstack([kept(whole)[1:], kept(whole)[-1:]])
        ),
    )


def relax_improved(problem: Problem, budget: int, limits: Limits, full: int) -> Relaxed | None:
    """None if there is no solution, or none in time. `full` is the budget whose excess places the boundaries."""
    cuts, costs = _improved(problem, budget, full), PossibleCosts.of(problem)
    answer = _solve(cuts.program, limits)
    if answer.values is None:
        return None
    columns = [column for keep in cuts.held for column in keep.values()]
    return Relaxed(
        bound=costs.total + answer.bound * costs.scale,
        fractions=np.array([answer.values[column] for column in columns]),
        order_of=lambda whole: expand_cuts(cuts, _solution(cuts, columns, whole)),
        hints_of=lambda whole: hints_of(cuts, _solution(cuts, columns, whole)),
    )


def _solve(program: Program, limits: Limits) -> ProgramAnswer:
    return solve(program, Settings(limits.clock, 0.0, limits.seed, verbose=limits.verbose), relaxed=True)


def _boundaries(problem: Problem, budget: int) -> list[int]:
    """Boundaries spread evenly among the stages that are over the budget without recomputation."""
    memory = memory_of(arrays_of(problem), np.arange(len(problem.nodes)))
    over = np.flatnonzero(memory > budget)
    count = min(len(over), max(FEWEST, LARGEST // len(problem.nodes)))
    return sorted({int(over[round(place)]) for place in np.linspace(0, len(over) - 1, count)}) if count else []


def _solution(cuts: GroupedProgram, columns: list[int], whole: Whole) -> list[float]:
    solution = np.zeros(len(cuts.program.costs))
    solution[columns] = whole
    return solution.tolist()
