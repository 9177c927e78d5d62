"""The first stage: an order for an attempt, from a solver.

Whether an order can be placed is known only after the search, when little time is left. So a search may have its
orders placed while it goes on (`fitting.py`).

Invariant: which orders are asked for depends on what they cost; where time is limited, also on the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt
from remat_cli.planning.search.fitting import Fitted
from remat_cli.planning.search.lean import lean_candidate
from remat_cli.planning.search.proofs import agreed, unproved
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from solvers.notes import Note
from solvers.problem import Limits
from solvers.registry import METHODS


@dataclass(frozen=True, slots=True)
class Ordered:
    """`found`: the solver's answer. `fitted`: the orders that were placed while it searched; None where nothing is to
    be placed."""

    found: Answer
    fitted: Fitted | None = None


def order(attempt: Attempt) -> Ordered:
    """The order of an attempt: known before, the leanest, or searched for."""
    request = attempt.searched
    if attempt.known is not None:
        return Ordered(attempt.known)
    if request.leanly:
        return Ordered(_leanest(request))
    fitted = Fitted(attempt)
    if request.subject.graph is None:
        return Ordered(_in_its_orders(request, request.subject, request.budget, request.limits, fitted))
    return Ordered(_searched(request, fitted), fitted)


def _leanest(request: PlanRequest) -> Answer:
    """The leanest plan, whatever it costs; without a status of a plan where that does not fit."""
    lean = lean_candidate(request)
    found = request.answer_of(lean, request.limits.clock.elapsed(), cut=request.limits.clock.spent())
    return found if request.target.held_by(lean) <= request.budget else found.given_up(Note(PlanNote.LEANEST))


def _searched(request: PlanRequest, fitted: Fitted) -> Answer:
    """Search with room left for the additions of the rewriting. Where that leads to no plan, search without that
    room."""
    limits = request.time.searching()
    narrow = request.room - request.target.reserve(request.subject.problem)
    found = _by_forms(request, narrow, limits, fitted)
    hopeless = (found.schedule.result.needed or 0) > request.most
    if found.found or request.most == narrow or request.late or hopeless:
        return found
    return _by_forms(request, request.most, request.time.searching(), fitted)


def _by_forms(request: PlanRequest, budget: int, limits: Limits, fitted: Fitted) -> Answer:
    """Search in the forms of the subject until one has a plan. Where there are several, the first has half the time."""
    subject, *others = request.target.forms(request.subject)
    found = _in_its_orders(request, subject, budget, limits, fitted, hurried=bool(others))
    for other in others:
        if found.found:
            break
        if limits.clock.over():
            return unproved(found)
        apart = _in_its_orders(request, other, budget, limits, fitted)
        found = apart.noted(Note(PlanNote.SCHEDULED_APART)) if apart.found else agreed(apart, found)
    return found


def _in_its_orders(
    request: PlanRequest, subject: Subject, budget: int, limits: Limits, fitted: Fitted, hurried: bool = False
) -> Answer:
    """Search with the ops first computed in the model's order; where that leads to no plan and others may be tried, in
    one that needs less memory. `hurried`: the search ends at half the time unless a plan is known by then."""
    limits = fitted.told(subject, limits)
    limits = fitted.hurried(limits) if hurried else limits
    if request.reorder is not None or METHODS[request.method].own_order:
        return request.ask(subject, budget, limits, bool(request.reorder))
    first = request.ask(subject, budget, fitted.hurried(limits), False)
    hopeless = (first.schedule.result.needed or 0) > budget  # no order of first computes fits
    if first.found or limits.clock.over() or limits.clock.left() < 1 or hopeless:
        return first
    second = request.ask(subject, budget, limits, True)
    return second if second.found else _smaller(first, second)


def _smaller(first: Answer, second: Answer) -> Answer:
    """The first of two answers without a plan, with the lesser of both peaks."""
    one, two = first.schedule, second.schedule
    if one.outcome and two.outcome and two.outcome.peak < one.outcome.peak:
        nearer = second.candidate.with_result(replace(one.result, order=two.result.order))
        return replace(first, candidate=nearer, seconds=second.seconds)
    return replace(first, seconds=second.seconds)
