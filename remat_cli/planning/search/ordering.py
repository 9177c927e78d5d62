"""The first stage: an order for an attempt, from a solver.

Whether an order can be placed is known only after the search, when little time is left. So orders that the search
reports are placed while it goes on (`met.py`).

Invariant: which orders are asked for depends on what they cost; where time is limited, also on the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer, answer
from remat_cli.planning.search.attempt import Attempt
from remat_cli.planning.search.lean import lean_candidate
from remat_cli.planning.search.met import Met
from remat_cli.planning.search.proofs import agreed, unproved
from remat_cli.planning.search.request import PlanRequest
from solvers.notes import Note
from solvers.problem import Limits


@dataclass(frozen=True, slots=True)
class Ordered:
    """`found`: the solver's answer. `met`: the plans that were placed while it searched; None where nothing is to be
    placed."""

    found: Answer
    met: Met | None = None


def order(attempt: Attempt) -> Ordered:
    """The order of an attempt: known before, the leanest, or searched for."""
    request = attempt.searched
    if attempt.known is not None:
        return Ordered(attempt.known)
    if request.leanly:
        return Ordered(_leanest(request))
    met = Met(attempt)
    if request.subject.graph is None:
        return Ordered(replace(met.while_it_goes_on(partial(_bare, met)), limits=request.limits))
    return Ordered(met.while_it_goes_on(partial(_searched, met)), met)


def _leanest(request: PlanRequest) -> Answer:
    """The leanest plan, whatever it costs; without a status of a plan where that does not fit."""
    lean = lean_candidate(request)
    found = request.answer_of(lean, request.limits.clock.elapsed(), cut=request.limits.clock.spent())
    return found if request.target.held_by(lean) <= request.budget else found.given_up(Note(PlanNote.LEANEST))


def _bare(met: Met, request: PlanRequest) -> Answer:
    """Search in a problem without a model: nothing needs a place, and sizes are as they stand."""
    subject, limits = request.subject, replace(request.limits, report=partial(met.hear, request.subject))
    return answer(subject, request.budget, request.method, request.solver, limits, request.reorder, request.enough)


def _searched(met: Met, request: PlanRequest) -> Answer:
    """Search with room left for the additions of the rewriting. Where that leads to no plan, search without that
    room."""
    online = request.target.online
    limits = request.time.searching(online)
    narrow = request.room - request.target.reserve(request.subject.problem)
    found = _by_forms(request, narrow, limits, met)
    if not found.found and online and not request.late:
        found = _by_forms(request, narrow, request.time.searching_again(), met)
    hopeless = (found.schedule.result.needed or 0) > request.most
    if found.found or request.most == narrow or request.late or hopeless:
        return found
    return _by_forms(request, request.most, limits, met)


def _by_forms(request: PlanRequest, budget: int, limits: Limits, met: Met) -> Answer:
    """Search in the forms of the subject until one has a plan."""
    subject, *others = request.target.forms(request.subject)
    hearing = replace(limits, report=partial(met.hear, subject))
    found = request.ask(subject, budget, hearing, request.reorder, hurried=bool(others))
    for other in others:
        if found.found:
            break
        if limits.clock.over():
            return unproved(found)
        apart = request.ask(other, budget, replace(limits, report=partial(met.hear, other)), request.reorder)
        found = apart.noted(Note(PlanNote.SCHEDULED_APART)) if apart.found else agreed(apart, found)
    return found
