"""Attempts of last resort: the leanest plan, and what budget is enough where even that does not fit.

Invariant: the budget that a refusal names was met by this plan in its session. A request for that budget or a larger
one tries the same plan before it gives up, so that it finds one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Checked, Policy
from remat_cli.planning.search.measured import of_graph
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.untouched import held_as_it_is
from remat_cli.planning.targets.candidate import Candidate
from solvers.notes import Note
from solvers.problem import Status


def last_resort(request: PlanRequest, found: Answer) -> Policy:
    """The leanest plan instead of none, if it fits; else the answer with a budget that is enough."""
    request = _leanly(request)
    lean = yield from leanest(request, found)
    if lean.found and found.status is not Status.INFEASIBLE:
        result = replace(found.schedule.result, status=Status.FEASIBLE, order=lean.schedule.result.order)
        return lean.with_result(result).noted(Note(PlanNote.LEANEST))
    return (yield from _with_enough(request, found, lean))


def leanest(request: PlanRequest, found: Answer) -> Policy:
    """The leanest plan for the request that has this answer."""
    return of_graph(replace(_leanly(request), subject=found.subject.own))


def _leanly(request: PlanRequest) -> PlanRequest:
    """The request for the leanest plan instead, once for a request."""
    if request.leanly:
        return request
    return replace(request, leanly=True, enough=None, beside=True, limits=request.time.last_resort())


def _with_enough(request: PlanRequest, found: Answer, lean: Answer) -> Policy:
    """The answer without a plan, with a budget that is enough: the leanest plan's, or what the model holds as it is.

    Where plans are witnessed, only another attempt tells whether the budget is enough.
    """
    given = request.subject.as_given.graph is not None
    held = held_as_it_is(request.subject, request.target.session) if given else None
    if lean.schedule.outcome is None or lean.schedule.result.order is None:
        return replace(found, enough=held)
    nearest = lean.candidate.with_result(replace(found.schedule.result, order=lean.schedule.result.order))
    needs = yield from _enough_for(request, lean)
    least = min((size for size in (needs, held) if size is not None), default=None)
    return replace(found, candidate=replace(nearest, footprint=found.candidate.footprint), enough=least)


def _enough_for(request: PlanRequest, lean: Answer) -> Generator[Attempt, Checked, int | None]:
    """The budget for which the leanest plan was found and, where that is asked for, witnessed."""
    needs = request.target.held_by(lean.candidate)
    if not request.target.bears_witness(lean.subject):
        return needs
    if request.limits.clock.over():
        return None
    made = _with_model(replace(request, budget=needs), lean)
    needs = needs if made is None else request.target.held_by(made)
    if made is not None and not request.target.tries_plans(lean.subject):
        return needs
    again = yield from of_graph(replace(request, subject=lean.subject, budget=needs))
    return needs if again.found else None


def _with_model(request: PlanRequest, lean: Answer) -> Candidate | None:
    """The plan with the model that makes its results by the original's kernels, if there is one."""
    candidate = lean.candidate
    return request.with_model(candidate, request.trials_of(lean.subject).model(lean.subject, candidate))
