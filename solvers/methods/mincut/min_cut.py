"""The fusion-aware minimum cut as a method: what to keep between forward and backward.

Yu and He, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware" (MLSys 2023). Without a budget
its answer is the paper's cut, less what moves no fewer bytes for it; with one, the best of many cuts that fits it.

Invariant: monotone in the budget, never over it, and nothing that may run only once runs again.
"""

from __future__ import annotations

from solvers.methods.mincut.cuts import cuts, paper_cut
from solvers.methods.mincut.options import CUTTING, CutOptions
from solvers.methods.mincut.rebuild import FOREVER
from solvers.methods.mincut.search import CutSearch
from solvers.methods.mincut.taken_back import least_moved
from solvers.methods.mincut.traffic import traffic_of
from solvers.notes import Note, SolverNote
from solvers.orders.best import GIVEN, Best, refuse
from solvers.problem import Limits, Problem, Result, Status


def solve(
    problem: Problem,
    budget: int,
    limits: Limits,
    options: CutOptions = CUTTING,
) -> Result:
    plain = range(len(problem.nodes))
    if not any(node.backward for node in problem.nodes):
        return refuse(problem, budget, limits, Note(SolverNote.NOTHING_BACKWARD))
    paper, fusion = options.objective == "paper", options.fusion
    by_time = options.objective != "traffic" and not options.between_groups
    priced = None if by_time else lambda order: traffic_of(problem, order, fusion).total
    search = CutSearch(Best(problem, budget, limits), priced)
    if paper:
        search.offer(least_moved(problem, paper_cut(problem)))
    else:
        search.offer(plain, GIVEN)
    if not paper and by_time and search.best is None:
        search.rebuild(cuts(problem, search.arrays))
        search.polish()
    if not paper and not by_time:
        search.rebuild(cuts(problem, search.arrays, hulls=2), (FOREVER, 4))  # counting traffic takes time
        search.polish()
    if options.between_groups:
        search.extend(fusion)
    return _result(search, by_time)


def _result(search: CutSearch, by_time: bool) -> Result:
    best, total = search.best, sum(node.cost for node in search.problem.nodes)
    if best is None:
        note = Note(SolverNote.SMALLEST_CUT, (len(search.found), search.leanest.peak))
        return Result(Status.UNKNOWN, search.leanest.order, notes=(note,))
    if by_time and best.cost == total:
        return Result(Status.OPTIMAL, best.order, total)
    return Result(Status.FEASIBLE, best.order)
