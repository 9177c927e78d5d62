"""Plans that fit as they really run: what is added to the model, and what its session's allocator holds, is inside the
budget.

Invariant: an answer that found a plan keeps to the budget that was asked for, and its bounds are of that budget. Where
the allocator cannot place a plan that tightly, ops are moved about, and only then is a plan for less taken; a note says
which. Where time is up before, it is what was placed on the way.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.planning.asking import Fitting, noted
from remat_cli.planning.insurance import ON_THE_WAY, Insurance, on_the_way
from remat_cli.planning.pipeline import REORDERED, Answer, answer, ending, half
from remat_cli.planning.placing import cheaper, cost, lowered, placed, promised, walked
from remat_cli.rewrite import additions
from solvers.problem import Limits, Progress, Result, Status

ROUNDS = 6
STEP = 0.01  # of the budget, by which the first try for less asks for less
SHARE = 0.6  # of the time, for the question itself: all but
ONLINE = 0.4  # of it where the allocator places as it is asked, so that orders are searched for afterwards
PLACING = 15.0  # seconds, if there is so much
AGAIN = 0.5  # of what is left then, for each try for less
LESS = "made for less than the budget: no plan for all of it was found that can be placed within it"
WALKED = "from a walk that evicts: no better plan was found that can be placed within the budget"
EARLIER = "found on the way: those found later could not be placed within the budget, or not in time"
APART = "ops that default options fuse are scheduled apart, so there their results may differ in the last bits"


def fitted(asked: Fitting) -> Answer:
    """A schedule whose model holds no more than the budget in its session, or why there is none."""
    if asked.subject.graph is None:
        return _bare(asked)
    insurance = Insurance(asked)
    first = _first(asked, insurance)
    if _no_use(asked, first) or not (first.found or insurance.kept):
        return _to(asked, first, _without(first))
    asked.say("rewriting the model and placing its values")
    if first.found and (other := placed(asked, first)):
        return _to(asked, first, other)
    asked.say("its values cannot be placed within the budget: looking for a plan whose can")
    return _to(asked, first, _instead(asked, first, insurance.kept))


def _bare(asked: Fitting) -> Answer:
    """Of a problem without a model nothing needs a place."""
    limits = ending(asked.limits, asked.enough) if asked.enough else asked.limits

    def report(progress: Progress) -> None:
        limits.report(progress)
        if found := on_the_way(asked, progress):
            asked.keep(noted(found, ON_THE_WAY))

    hearing = replace(limits, report=report)
    found = answer(asked.subject, asked.budget, asked.method, asked.solver, hearing, asked.reorder)
    return replace(found, limits=asked.limits)


def _instead(asked: Fitting, first: Answer, kept: Answer | None) -> Answer:
    """The cheapest of what can be had where the answer itself cannot be placed; without any, that one as it is."""
    walk = walked(asked, first) if first.found and not kept else None
    less = _made_for_less(asked, first) if first.found else None
    others = ((less, LESS), (kept, EARLIER), (walk, WALKED))
    found = [noted(other, note) for other, note in others if other is not None]
    if found:
        return cheaper(asked, min(found, key=cost))
    return promised(first, asked.session, asked.budget, asked.limits.clock.within(0))


def _no_use(asked: Fitting, found: Answer) -> bool:
    """Whether it is proved that nothing is as cheap as is asked for."""
    bound, most = found.schedule.result.bound_any_order, asked.enough.bound if asked.enough else None
    return bound is not None and most is not None and bound > most


def _without(found: Answer) -> Answer:
    """The answer without a plan."""
    if not found.found:
        return found
    return replace(
        found, schedule=replace(found.schedule, result=replace(found.schedule.result, status=Status.UNKNOWN))
    )


def _made_for_less(asked: Fitting, first: Answer) -> Answer | None:
    """A plan for a smaller budget that can be placed, of less and less until one is; each step is twice the last.

    It begins with what would be enough if a plan for less were over its budget by the same part.
    """
    step = STEP * asked.budget
    needed = asked.counted(promised(first, asked.session, asked.budget, asked.limits.clock.within(0)))
    target = min(asked.room - step, asked.room * asked.budget / needed)
    for _ in range(ROUNDS):
        if asked.late or target <= first.subject.problem.resident:
            return None
        found = _ask_for(asked, first, int(target))
        if not found.found:
            return None
        if fitting := placed(asked, found):
            return fitting
        step *= 2
        target -= step
    return None


def _first(asked: Fitting, insurance: Insurance) -> Answer:
    """The question itself, with room for what the rewriting may add; without, if so little less leads to no plan."""
    left = asked.limits.clock.left()
    limited = asked.limits.clock.work is not None
    online = asked.allocator.online
    share = ONLINE if online else SHARE
    whole = limited or online
    limits = asked.limits.share(share) if whole else asked.limits.within(max(share * left, left - PLACING))
    spare = additions(asked.session, asked.subject.problem)
    found = _with_bits(asked, asked.room - spare, limits, insurance)
    if not found.found and online and not asked.late:
        found = _with_bits(asked, asked.room - spare, asked.limits.share(SHARE), insurance)
    if found.found or not spare or asked.late:
        return found
    return _with_bits(asked, asked.room, limits, insurance)


def _with_bits(asked: Fitting, budget: int, limits: Limits, insurance: Insurance) -> Answer:
    """Schedule what is fused by default as one, if it is marked; op by op only if that leads to no plan."""
    subject = asked.subject
    if not subject.problem.inner:
        return asked.ask(subject, budget, insurance.insured(subject, limits), asked.reorder)
    found = asked.ask(subject, budget, half(insurance.insured(subject, limits)), asked.reorder)
    if found.found or limits.clock.over():
        return found
    apart = subject.solving(replace(subject.problem, inner=frozenset()))
    found = asked.ask(apart, budget, insurance.insured(apart, limits), asked.reorder)
    return noted(found, APART) if found.found else found


def _ask_for(asked: Fitting, found: Answer, target: int) -> Answer:
    """A plan for a smaller budget, in the order of first computes that led to this one."""
    quiet = asked.limits.silent().share(AGAIN)
    again = bool(asked.reorder) or REORDERED in found.schedule.result.notes
    fewer = asked.ask(found.subject, target, quiet, again)
    if fewer.found or again or asked.reorder is not None or asked.late:
        return fewer
    return asked.ask(found.subject, target, quiet, True)


def _status(asked: Fitting, found: Answer, result: Result) -> Status:
    """Another plan than the one that was proved may be as good as that."""
    assert found.schedule.outcome is not None
    for status, bound in ((Status.OPTIMAL, result.bound_any_order), (Status.ORDER_OPTIMAL, result.bound)):
        if bound is not None and found.schedule.outcome.cost <= bound * (1 + asked.limits.gap):
            return status
    return Status.FEASIBLE


def _to(asked: Fitting, first: Answer, found: Answer) -> Answer:
    """The answer found as one to the question that was asked, whose bounds are the first answer's."""
    seconds, cut = asked.limits.clock.elapsed(), first.cut or asked.limits.clock.spent()
    found = replace(found, budget=asked.budget, limits=asked.limits, seconds=seconds, cut=cut)
    if not found.found:
        return found
    proved = first.schedule.result
    if asked.fits(found):
        found = lowered(asked, found)
    result = replace(
        found.schedule.result,
        bound=proved.bound,
        bound_any_order=proved.bound_any_order,
        peak_bound=proved.peak_bound,
        grounds=proved.grounds,
    )
    if not asked.fits(found):
        result = replace(result, status=Status.UNKNOWN)
    elif found.schedule.plan != first.schedule.plan:
        result = replace(result, status=_status(asked, found, result))
    return replace(found, schedule=replace(found.schedule, result=result))
