"""The leanest plan: the one that needs least memory, with its places.

Invariant: unless time ends, it is the same for every request about the subject, so that any of them finds it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from solvers.methods.auto.leanest import find_lean, list_lean, list_walked
from solvers.notes import Note
from solvers.problem import Result, Status
from solvers.reductions.views import reduced
from solvers.schedule import Schedule, evaluate

MOST_PLACED = 6  # orders of which models are made


def lean_candidate(request: PlanRequest) -> Candidate:
    """The leanest plan, with its places: the same for every request about the subject, so it is found once."""
    key = id(request.subject.graph), request.subject.problem
    if key not in request.leanest:
        request.leanest[key] = _least_placed(request)
    return request.leanest[key]


def _least_placed(request: PlanRequest) -> Candidate:
    """Making a model takes long, so few are made: of the orders that promise to need least. Each is made as tight as it
    can be."""
    candidates = _list_lean(request)
    if request.subject.graph is None:
        return candidates[0]
    clock = request.limits.clock.timed()  # of work it has none: what is left would decide which plan it is
    best = request.target.place(candidates[0], 1, clock)
    for candidate in candidates[1:MOST_PLACED]:
        if clock.over():
            break
        best = min(best, request.target.place(candidate, 1, clock), key=request.target.held_by)
    return best


def _list_lean(request: PlanRequest) -> list[Candidate]:
    """An order of few live bytes may leave gaps, so several are tried: of what costs the same memory the first."""
    subject = request.subject
    problem = request.sized(subject).problem
    smaller = reduced(problem)
    if request.target.online and subject.graph is not None:
        orders = [smaller.expand(order) for order in list_walked(smaller.problem, request.limits)]
        orders.sort(key=request.memory(subject).height)
    else:
        known = request.lean.get(problem)  # if a search that found nothing had it
        lean = find_lean(smaller.problem, request.limits).order if known is None else smaller.shrink(known)
        orders = [smaller.expand(order) for order in list_lean(smaller.problem, request.limits, lean)]
    return [_candidate(subject, order) for order in orders]


def _candidate(subject: Subject, order: Sequence[int]) -> Candidate:
    plan, outcome = evaluate(subject.problem, order)
    result = Result(Status.FEASIBLE, plan.order(), notes=(Note(PlanNote.LEANEST),))
    return Candidate(subject, Schedule(result, plan, outcome))
