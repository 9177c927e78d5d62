"""The second stage: an order gets its places. It is repaired, or an alternative that fits stands in.

Invariant: an answer that has a plan keeps to the budget of its attempt, and its bounds are for that budget.

Where the allocator cannot place a plan that tightly, ops are moved about. Only then is a plan for a smaller budget
taken, and a note says which. If time ends before, the answer is the best candidate placed so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt
from remat_cli.planning.search.fitting import Fitted
from remat_cli.planning.search.ordering import Ordered
from remat_cli.planning.search.proofs import judged
from remat_cli.planning.search.repairs import lower, repair, walk
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.targets.candidate import Candidate
from solvers.coroutines import run
from solvers.notes import Note
from solvers.problem import Result, Status

LESS_ROUNDS = 6
LESS_STEP = 0.01  # share of the budget; the first search for less memory asks for this much less


def place(attempt: Attempt, ordered: Ordered) -> Answer:
    """The answer with places within the budget, or without a plan and with the reason why."""
    request, first, fitted = attempt.searched, ordered.found, ordered.fitted
    if attempt.known is not None:
        repaired = run(repair(request, first.candidate, request.time.repairing()))
        return first.given_up() if repaired is None else replace(first, candidate=_judged(request, first, repaired))
    if fitted is None:
        return first
    if _is_useless(request, first) or not (first.found or fitted.best or fitted.newest):
        return _without_plan(request, first)
    best = fitted.best
    if first.found and (best is None or first.cost < best.cost):
        request.say("rewriting the model and placing its values")
        best = min(filter(None, (fitted.finish(first), best)), key=lambda one: one.cost, default=None)
    if best is None:
        request.say("its values cannot be placed within the budget: looking for a plan whose can")
        best = _cheapest_alternative(request, first, fitted)
    if best is None and request.at_hand is not None:
        return _without_plan(request, first)  # nobody asks how near it came
    if best is None:
        return _without_plan(request, first, request.place(first.candidate, request.time.simply()))
    return _as_asked(request, first, best)


def _judged(request: PlanRequest, known: Answer, repaired: Candidate) -> Candidate:
    """The candidate with the status that its own cost has, which repairs may have made another."""
    result = repaired.schedule.result
    if repaired.cost == known.cost:
        return repaired
    return repaired.with_result(replace(result, status=_status(request, repaired, result)))


def _is_useless(request: PlanRequest, found: Answer) -> bool:
    """Whether a proof shows that no plan is as cheap as the request asks."""
    bound, most = found.schedule.result.bound_any_order, request.enough.bound if request.enough else None
    return bound is not None and most is not None and bound > most


def _cheapest_alternative(request: PlanRequest, first: Answer, fitted: Fitted) -> Candidate | None:
    """The cheapest alternative to a plan that cannot be placed, among equals the one for less memory; where no plan was
    found, the last order that was met."""
    if not first.found:
        last = fitted.last()
        met = None if last is None else run(repair(request, last, request.time.repairing()))
        return None if met is None else met.noted(Note(PlanNote.MET_EARLIER))
    walked = walk(request, first.candidate, request.time.walking())
    for less in _made_for_less(request, first):
        repaired = run(repair(request, less.candidate, request.time.repairing()))
        if repaired is not None:  # a plan for even less memory costs more
            if walked is None or repaired.cost <= walked.cost:
                return repaired.noted(Note(PlanNote.MADE_FOR_LESS))
            break
    return None if walked is None else walked.noted(Note(PlanNote.WALKED))


def _made_for_less(request: PlanRequest, first: Answer) -> Iterator[Answer]:
    """Plans for less and less memory; each step is twice the last.

    The first step assumes that a plan for less memory exceeds its budget by the same share as the first plan does.
    """
    step = LESS_STEP * request.budget
    needed = request.counted(request.place(first.candidate, request.time.simply()))
    wanted = min(request.room - step, request.room * request.budget / needed)
    for _ in range(LESS_ROUNDS):
        if request.late or wanted <= first.subject.problem.resident:
            return
        found = _ask_for(request, first, int(wanted))
        if not found.found:
            return
        yield found
        step *= 2
        wanted -= step


def _ask_for(request: PlanRequest, first: Answer, budget: int) -> Answer:
    """A plan for a smaller budget, with the order of first computes that led to the first plan."""
    limits = request.time.less()
    limits = limits if request.enough is None else request.enough.within(limits)
    again = bool(request.reorder) or first.says(PlanNote.REORDERED)
    found = request.ask(first.subject, budget, limits, again)
    if found.found or again or request.reorder is not None or request.late:
        return found
    return request.ask(first.subject, budget, limits, True)


def _without_plan(request: PlanRequest, first: Answer, candidate: Candidate | None = None) -> Answer:
    """The answer without a plan. `candidate`: the placed plan that comes nearest to the budget."""
    found = judged(first, request.budget)
    if candidate is not None and candidate.footprint is not None:
        found = replace(found, candidate=replace(found.candidate, footprint=candidate.footprint))
    return _at_the_end(request, first, found)


def _at_the_end(request: PlanRequest, first: Answer, found: Answer) -> Answer:
    seconds, cut = request.limits.clock.elapsed(), first.cut or request.limits.clock.spent()
    return replace(found, limits=request.limits, seconds=seconds, cut=cut)


def _as_asked(request: PlanRequest, first: Answer, best: Candidate) -> Answer:
    """The candidate as the answer to the request, with the bounds that the search proved."""
    proved = first.schedule.result
    with request.so_far.times.part("lowering the block"):
        best = lower(request, best)
    own, mine = best.plan == first.schedule.plan, best.schedule.result
    result = replace(
        proved,
        status=proved.status if own else _status(request, best, proved),
        order=mine.order,
        notes=proved.notes if first.found else mine.notes,
        impossible=None,
        found_by=mine.found_by or proved.found_by,
    )
    return _at_the_end(request, first, request.answer_of(best.with_result(result), 0.0, cut=False))


def _status(request: PlanRequest, candidate: Candidate, result: Result) -> Status:
    """The status of the candidate's plan. A plan other than the proved one may be as good, and is optimal then."""
    for status, bound in ((Status.OPTIMAL, result.bound_any_order), (Status.ORDER_OPTIMAL, result.bound)):
        if bound is not None and candidate.cost <= bound * (1 + request.limits.gap):
            return status
    return Status.FEASIBLE
