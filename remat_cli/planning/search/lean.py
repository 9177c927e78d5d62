"""The plan of last resort: the one that needs least memory, which any request for the same subject finds again.

Invariant: the budget that a refusal names was met by this plan in its session. A request for that budget or a larger
one tries the same plan before it gives up, so that it finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer, answer
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.untouched import held_as_it_is
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.targets.placing import place
from remat_cli.planning.time_plan import LEAN_GRACE_SECONDS, LEAN_GRACE_SHARE
from solvers.clock import Clock
from solvers.methods.auto.leanest import find_lean, list_walked
from solvers.notes import Note
from solvers.problem import Result, Status
from solvers.reductions.views import reduced
from solvers.schedule import Schedule, evaluate

MOST_PLACED = 6  # orders of which models are made
WITNESSED_ROUNDS = 3  # of asking for what the leanest plan turned out to need


def leanly(request: PlanRequest) -> PlanRequest:
    """The request for the leanest plan instead, once for a request. It has the time that is left, and a grace where
    there is none: no work limits it, which would decide what it finds."""
    if request.leanly:
        return request
    clock = request.limits.clock
    own = Clock(max(clock.left(), LEAN_GRACE_SECONDS + LEAN_GRACE_SHARE * clock.seconds), clock.stopped)
    limits = replace(request.limits.silent(), clock=own)
    return replace(request, leanly=True, enough=None, limits=limits, keep=lambda _: None)


def lean_candidate(request: PlanRequest) -> Candidate:
    """The leanest plan, with its places: the same for every request about the subject, so it is found once."""
    key = id(request.subject.graph), request.later_runs, request.subject.problem
    if key not in request.leanest:
        request.leanest[key] = _least_placed(request)
    return request.leanest[key]


def _least_placed(request: PlanRequest) -> Candidate:
    """Making a model takes long, so few are made: of the orders that promise to need least."""
    if request.subject.graph is None:
        return _leanest_of(request, request.subject)[0]
    orders = [candidate for subject in _forms(request.subject) for candidate in _leanest_of(request, subject)]
    orders.sort(key=lambda candidate: request.target.estimate(candidate.subject.problem, candidate.plan))
    best = place(request.target, orders[0])
    for candidate in orders[1:MOST_PLACED]:
        if request.limits.clock.over():
            break
        best = min(best, place(request.target, candidate), key=lambda one: lean_needs(request, one))
    return best


def lean_needs(request: PlanRequest, candidate: Candidate) -> int:
    """The least budget that the candidate keeps to."""
    assert candidate.schedule.outcome is not None
    live = candidate.schedule.outcome.peak
    if candidate.footprint is None:
        return live
    return max(live + request.target.aside(candidate.subject), request.counted(candidate))


def enough_for(request: PlanRequest, found: Answer, lean: Answer, find: Callable[[PlanRequest], Answer]) -> Answer:
    """The answer without a plan, with a budget that is enough: the leanest plan's, or what the model holds as it is.

    `request`: for the leanest plan. `find`: how a request is answered. Where plans are witnessed, only that tells
    whether the budget is enough.
    """
    held = _as_it_is(request)
    if lean.schedule.outcome is None or lean.schedule.result.order is None:
        return replace(found, enough=held)
    schedule = replace(lean.schedule, result=replace(found.schedule.result, order=lean.schedule.result.order))
    needs = _witnessed(request, lean, find) if request.target.bears_witness(lean.subject) else _needs_of(request, lean)
    least = min((size for size in (needs, held) if size is not None), default=None)
    return replace(found, subject=lean.subject, schedule=schedule, enough=least)


def _witnessed(request: PlanRequest, lean: Answer, find: Callable[[PlanRequest], Answer]) -> int | None:
    """The budget for which the leanest plan was found and witnessed. Ops that have to run once make it need more."""
    if request.limits.clock.over():
        return None
    made = _with_model(request, lean)
    if made is not None and not request.target.tries_plans(lean.subject):
        return lean_needs(request, made)
    needs = _needs_of(request, lean) if made is None else lean_needs(request, made)
    for _ in range(WITNESSED_ROUNDS):
        if request.limits.clock.over():
            return None
        again = find(replace(request, subject=lean.subject, budget=needs))
        if again.found:
            return needs
        more = _needs_of(request, again)
        if more <= needs:
            return None
        needs = more
    return None


def _with_model(request: PlanRequest, lean: Answer) -> Candidate | None:
    """The plan with the model that makes its results by the original's kernels, if there is one."""
    candidate = _candidate_of(lean)
    return request.with_model(candidate, request.trials_of(lean.subject).model(lean.subject, candidate))


def _needs_of(request: PlanRequest, lean: Answer) -> int:
    return lean_needs(request, _candidate_of(lean))


def _candidate_of(lean: Answer) -> Candidate:
    return Candidate(lean.subject, lean.schedule, footprint=lean.footprint)


def _forms(subject: Subject) -> Iterator[Subject]:
    """With each kernel that the runtime fuses as one op, and op by op."""
    yield subject
    if subject.problem.inner:
        yield subject.solving(replace(subject.problem, inner=frozenset()))


def _leanest_of(request: PlanRequest, subject: Subject) -> list[Candidate]:
    """Where the allocator places as it is asked, an order of few live bytes may leave gaps, so several are tried."""
    bare = subject.graph is None
    sized = subject if bare else subject.solving(request.in_units(subject.problem))
    if request.target.online and not bare:
        smaller = reduced(sized.problem)
        orders = [smaller.expand(order) for order in list_walked(smaller.problem, request.limits)]
    else:
        found = answer(sized, request.budget, request.method, find_lean, request.limits, False).schedule.result.order
        assert found is not None
        orders = [found]
    return [_candidate(request, subject, order) for order in orders]


def _candidate(request: PlanRequest, subject: Subject, order: Sequence[int]) -> Candidate:
    plan, outcome = evaluate(subject.problem, order)
    notes = [PlanNote.LEANEST] if subject is request.subject else [PlanNote.LEANEST, PlanNote.SCHEDULED_APART]
    result = Result(Status.FEASIBLE, plan.order(), notes=tuple(map(Note, notes)))
    return Candidate(subject, Schedule(result, plan, outcome))


def _as_it_is(request: PlanRequest) -> int | None:
    """What the model holds without a plan."""
    graph = request.subject.as_given.graph
    if graph is None:
        return None
    return held_as_it_is(request.subject, request.target.session)
