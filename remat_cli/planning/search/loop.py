"""The loop: candidates are proposed, each is repaired by the target, and the cheapest that fits is the answer.

Invariant: an answer that found a plan keeps to the budget that was asked for, and its bounds are for that budget.

Where the allocator cannot place a plan that tightly, ops are moved about. Only then is a plan for a smaller budget
taken, and a note says which. If time ends before, the answer is the best candidate placed so far.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer, answer, ending
from remat_cli.planning.search.lean import lean_candidate, lean_needs
from remat_cli.planning.search.met import Met, candidate_so_far
from remat_cli.planning.search.proofs import judged
from remat_cli.planning.search.proposals import alternatives, search
from remat_cli.planning.search.repairs import arrange_cheaper, lower, repair
from remat_cli.planning.search.request import PlanRequest, candidate_of
from remat_cli.planning.targets.candidate import Candidate
from solvers.notes import Note
from solvers.problem import Progress, Result, Status


def find_fitting(request: PlanRequest) -> Answer:
    """A plan whose model holds no more than the budget in its session, or the reason why there is none."""
    if request.leanly:
        return _find_leanest(request)
    if request.subject.graph is None:
        return _find_bare(request)
    met = Met(request)
    try:
        first = search(request, met)
    finally:
        met.close()
    if _is_useless(request, first) or not (first.found or met.best):
        return _without_plan(request, first)
    best = met.instead_of(first)
    if first.found and best is None and not met.gave_up(first):
        request.say("rewriting the model and placing its values")
        best = repair(request, candidate_of(first))
    if best is None:
        request.say("its values cannot be placed within the budget: looking for a plan whose can")
        best = _cheapest_alternative(request, first, met.best)
    if best is None and request.at_hand is not None:
        return _without_plan(request, first)  # nobody asks how near it came
    if best is None:
        return _without_plan(request, first, request.place(candidate_of(first), request.limits.clock.within(0)))
    return _as_asked(request, first, best)


def _find_bare(request: PlanRequest) -> Answer:
    """A plan of a problem without a model: nothing needs a place."""
    limits = ending(request.limits, request.enough) if request.enough else request.limits

    def report(progress: Progress) -> None:
        limits.report(progress)
        if candidate := candidate_so_far(request, progress):
            request.keep(request.answer_of(candidate.noted(Note(PlanNote.STILL_SEARCHING)), progress.seconds, cut=True))

    hearing = replace(limits, report=report)
    found = answer(request.subject, request.budget, request.method, request.solver, hearing, request.reorder)
    return replace(found, limits=request.limits)


def _find_leanest(request: PlanRequest) -> Answer:
    """The leanest plan, whatever it costs; without a status of a plan where that does not fit."""
    lean = lean_candidate(request)
    fits = lean_needs(request, lean) <= request.budget
    found = request.answer_of(lean, request.limits.clock.elapsed(), cut=request.limits.clock.spent())
    return found if fits else found.given_up(Note(PlanNote.LEANEST))


def _cheapest_alternative(request: PlanRequest, first: Answer, met: Candidate | None) -> Candidate | None:
    """The cheapest alternative to a plan that was found but cannot be placed."""
    fitting: list[tuple[int, int, Candidate]] = []
    for proposal in alternatives(request, first, met):
        if repaired := repair(request, proposal.candidate):
            fitting.append((repaired.cost, proposal.rank, repaired.noted(proposal.note)))
            if proposal.candidate.footprint is None:  # a plan for even less memory costs more
                break
    if not fitting:
        return None
    return arrange_cheaper(request, min(fitting, key=lambda one: one[:2])[2])


def _is_useless(request: PlanRequest, found: Answer) -> bool:
    """Whether a proof shows that no plan is as cheap as the request asks."""
    bound, most = found.schedule.result.bound_any_order, request.enough.bound if request.enough else None
    return bound is not None and most is not None and bound > most


def _without_plan(request: PlanRequest, first: Answer, candidate: Candidate | None = None) -> Answer:
    """The answer without a plan. `candidate`: the placed plan that comes nearest to the budget."""
    found = judged(first, request.budget)
    if candidate is not None and candidate.footprint is not None:
        found = replace(found, promise=candidate.promise, placement=candidate.footprint.placement)
    return _at_the_end(request, first, found)


def _at_the_end(request: PlanRequest, first: Answer, found: Answer) -> Answer:
    seconds, cut = request.limits.clock.elapsed(), first.cut or request.limits.clock.spent()
    return replace(found, limits=request.limits, seconds=seconds, cut=cut)


def _as_asked(request: PlanRequest, first: Answer, best: Candidate) -> Answer:
    """The candidate as the answer to the request, with the bounds that the search proved."""
    proved = first.schedule.result
    with request.times.part("lowering the block"):
        best = lower(request, best)
    result = replace(
        best.schedule.result,
        bound=proved.bound,
        bound_any_order=proved.bound_any_order,
        peak_bound=proved.peak_bound,
        grounds=proved.grounds,
    )
    if best.plan != first.schedule.plan:
        result = replace(result, status=_status(request, best, result))
    best = replace(best, schedule=replace(best.schedule, result=result))
    return _at_the_end(request, first, request.answer_of(best, 0.0, cut=False))


def _status(request: PlanRequest, candidate: Candidate, result: Result) -> Status:
    """The status of the candidate's plan. A plan other than the proved one may be as good, and is optimal then."""
    for status, bound in ((Status.OPTIMAL, result.bound_any_order), (Status.ORDER_OPTIMAL, result.bound)):
        if bound is not None and candidate.cost <= bound * (1 + request.limits.gap):
            return status
    return Status.FEASIBLE
