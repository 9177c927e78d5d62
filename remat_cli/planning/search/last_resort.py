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
    """The leanest plan instead of none, if it fits; else the answer with a budget that is enough.

    The graph that a session runs comes first, then the file's own ops, as in a search. Until a plan is known, what the
    model holds as it is is enough.
    """
    request = _leanly(request)
    if request.subject.graph is not None:
        found = replace(found, enough=held_as_it_is(request.subject, request.target.session))
    for number in range(1 + request.target.has_own_graph(request.subject)):
        subject = request.subject.own if number else request.subject
        lean = yield from of_graph(replace(request, subject=subject))
        if lean.found and found.status is not Status.INFEASIBLE:
            result = lean.schedule.result
            if found.subject.nodes == subject.nodes:  # else its bounds are of other ops
                result = replace(found.schedule.result, status=Status.FEASIBLE, order=result.order)
            return lean.with_result(result).noted(Note(PlanNote.LEANEST))
        if lean.schedule.outcome is not None and lean.schedule.result.order is not None:
            found = yield from _with_enough(request, found, lean)
            keep_refusal(request, found)
        if request.limits.clock.over():
            break
    return found


def keep_refusal(request: PlanRequest, found: Answer) -> None:
    """The answer without a plan is kept, because the time may end during what follows."""
    request.so_far.keep(replace(found, limits=request.limits))


def leanest(request: PlanRequest, found: Answer) -> Policy:
    """The leanest plan for the request that has this answer."""
    return of_graph(replace(_leanly(request), subject=found.subject.own))


def _leanly(request: PlanRequest) -> PlanRequest:
    """The request for the leanest plan instead, once for a request."""
    if request.leanly:
        return request
    return replace(request, leanly=True, enough=None, beside=True, limits=request.time.last_resort())


def _with_enough(request: PlanRequest, found: Answer, lean: Answer) -> Policy:
    """The answer without a plan, with this plan as the nearest one and its budget as enough, if that is less."""
    needs = yield from _enough_for(request, lean, found.enough)
    if needs is None:
        return found
    nearest = lean.candidate.with_result(replace(found.schedule.result, order=lean.schedule.result.order))
    return replace(found, candidate=replace(nearest, footprint=found.candidate.footprint), enough=needs)


def _enough_for(request: PlanRequest, lean: Answer, known: int | None) -> Generator[Attempt, Checked, int | None]:
    """The budget for which the leanest plan was found, if that is less than what is known to be enough.

    Where plans are witnessed, only another attempt tells whether a budget is enough. One that fails knows a plan that
    went further, because more ops run once or its model was measured: that one needs more.
    """
    needs = request.target.held_by(lean.candidate)
    witnessed = request.target.bears_witness(lean.subject)
    while known is None or needs < known:
        if not witnessed:
            return needs
        if request.limits.clock.over():
            break
        asked = replace(request, subject=lean.subject, budget=needs)
        made = _with_model(asked, lean)
        needs = needs if made is None else max(needs, request.target.held_by(made))
        if known is not None and needs >= known:
            break
        lean = yield from of_graph(replace(asked, budget=needs))
        if lean.found:
            return needs
        if (more := request.target.held_by(lean.candidate)) <= needs:
            break
        needs = more
    return None


def _with_model(request: PlanRequest, lean: Answer) -> Candidate | None:
    """The plan with the model that makes its results by the original's kernels, if there is one."""
    candidate = lean.candidate
    return request.with_model(candidate, request.trials_of(lean.subject).model(lean.subject, candidate))
