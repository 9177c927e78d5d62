"""Plans that fit as they really run: what is added to the model, and what its session's allocator holds, is inside the
budget.

Invariant: an answer that found a plan keeps to the budget that was asked for, and its bounds are of that budget. Where
the allocator cannot place a plan that tightly, ops are moved about, and only then is a plan for less taken; a note says
which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from remat_cli.model.sessions import Session
from remat_cli.planning.holding import ALLOCATORS, Allocator, held, in_units
from remat_cli.planning.pipeline import REORDERED, Answer, Enough, answer, ending, half
from remat_cli.planning.subject import Subject
from remat_cli.rewrite import Rewritten, additions, rewrite
from solvers.clock import Clock
from solvers.problem import Limits, Progress, Result, Solver, Status
from solvers.registry import METHODS
from solvers.schedule import evaluate

ROUNDS = 6
STEP = 0.01  # of the budget, by which the first try for less asks for less
SHARE = 0.6  # of the time, for the question itself: all but
PLACING = 15.0  # seconds, if there is so much
SETTLING = 0.7  # of what is left, for moving ops about
LOWERING = 0.5  # of what is left at the end, for a block that is lower than it must be
AGAIN = 0.5  # of what is left then, for each try for less
WALKING = 0.3  # of it, for walks: the plan of last resort
LEAST = 0.5  # seconds: with less left, nothing more is asked
GRACE = 2.0  # seconds that what was found has to be placed even then
AFRESH = 20.0  # seconds, whatever time it is, to find places again that were found already
MOVED = "ops were moved about, at no cost, so that all they need can be placed; bounds are of the order before that"
LESS = "made for less than the budget: no plan for all of it was found that can be placed within it"
WALKED = "from a walk that evicts: no better plan was found that can be placed within the budget"
APART = "ops that default options fuse are scheduled apart, so there their results may differ in the last bits"


@dataclass(frozen=True, slots=True)
class Fitting:
    """What is asked of which solver, and of which kind of session the answer is to be.

    `enough`: whether a search that knows this may end.
    """

    subject: Subject
    budget: int
    method: str
    solver: Solver
    limits: Limits
    session: Session
    reorder: bool | None = False
    enough: Enough | None = None

    @property
    def allocator(self) -> Allocator:
        return ALLOCATORS[self.session.allocator]

    @property
    def late(self) -> bool:
        return self.limits.clock.over() or self.limits.clock.left() < LEAST

    def ask(self, subject: Subject, budget: int, limits: Limits, reorder: bool | None) -> Answer:
        """The method's answer, every size being what the allocator takes for it."""
        whole = subject.solving(in_units(subject.problem, self.allocator.unit))
        limits = ending(limits, self.enough) if self.enough else limits
        found = answer(whole, budget, self.method, self.solver, limits, reorder)
        found = replace(found, subject=subject, baseline=subject.before())
        if not found.found or found.schedule.result.order is None:
            return found
        plan, outcome = evaluate(subject.problem, found.schedule.result.order)
        return replace(found, schedule=replace(found.schedule, plan=plan, outcome=outcome))

    def fits(self, found: Answer) -> bool:
        return self.counted(found) <= self.budget

    def say(self, doing: str) -> None:
        self.limits.report(Progress(self.limits.clock.elapsed(), doing=doing))

    def counted(self, found: Answer) -> int:
        assert found.promise is not None
        return self.allocator.counted(found.promise)


def fitted(asked: Fitting) -> Answer:
    """A schedule whose model holds no more than the budget in its session, or why there is none."""
    if asked.subject.graph is None:
        limits = ending(asked.limits, asked.enough) if asked.enough else asked.limits
        found = answer(asked.subject, asked.budget, asked.method, asked.solver, limits, asked.reorder)
        return replace(found, limits=asked.limits)
    first = _first(asked)
    if not first.found or _no_use(asked, first):
        return _to(asked, first, _without(first))
    asked.say("rewriting the model and placing its values")
    if other := placed(asked, first):
        return _to(asked, first, other)
    asked.say("its values cannot be placed within the budget: looking for a plan whose can")
    walked, less = _walked(asked, first), _made_for_less(asked, first)
    if less and not (walked and _cost(walked) < _cost(less)):
        return _to(asked, first, _noted(less, LESS))
    simply = asked.limits.clock.within(0)
    return _to(asked, first, _noted(walked, WALKED) if walked else promised(first, asked.session, asked.budget, simply))


def placed(asked: Fitting, found: Answer) -> Answer | None:
    """The answer with all it needs within the budget: at once, or its ops moved about, or after a longer search."""
    simply = promised(found, asked.session, asked.budget, asked.limits.clock.within(0))
    if asked.fits(simply):
        return simply
    if other := _settled(asked, simply):
        return other
    longer = promised(found, asked.session, asked.budget, asked.limits.clock.share(SETTLING))
    return longer if asked.fits(longer) else None


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


def _cost(found: Answer) -> int:
    assert found.schedule.outcome is not None
    return found.schedule.outcome.cost


def _made_for_less(asked: Fitting, first: Answer) -> Answer | None:
    """A plan for a smaller budget that can be placed, of less and less until one is; each step is twice the last."""
    step = STEP * asked.budget
    target = asked.budget - step
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


def _may_be_walked(method: str) -> bool:
    """Whether a plan by any means is wanted. The papers' methods answer for themselves, or not at all."""
    return method in METHODS and METHODS[method].may_reorder


def promised(found: Answer, session: Session, budget: int | None = None, clock: Clock | None = None) -> Answer:
    """The answer with all that its model needs in such a session; with a budget, as tightly as that asks."""
    figures = held(session, _rewritten(found, session), budget, clock)
    return replace(found, session=session, promise=figures.promise, placement=figures.placement)


def _rewritten(found: Answer, session: Session) -> Rewritten:
    graph, plan = found.subject.graph, found.schedule.plan
    assert graph is not None
    assert plan is not None
    return rewrite(graph, found.subject.problem, plan, found.subject.launch, session)


def _first(asked: Fitting) -> Answer:
    """The question itself, with room for what the rewriting may add; without, if so little less leads to no plan."""
    left = asked.limits.clock.left()
    limited = asked.limits.clock.work is not None
    limits = asked.limits.share(SHARE) if limited else asked.limits.within(max(SHARE * left, left - PLACING))
    spare = additions(asked.session, asked.subject.problem)
    found = _with_bits(asked, asked.budget - spare, limits)
    if found.found or not spare or asked.late:
        return found
    return _with_bits(asked, asked.budget, limits)


def _with_bits(asked: Fitting, budget: int, limits: Limits) -> Answer:
    """Schedule what is fused by default as one, if it is marked; op by op only if that leads to no plan."""
    subject = asked.subject
    if not subject.problem.inner:
        return asked.ask(subject, budget, limits, asked.reorder)
    found = asked.ask(subject, budget, half(limits), asked.reorder)
    if found.found or limits.clock.over():
        return found
    apart = subject.solving(replace(subject.problem, inner=frozenset()))
    found = asked.ask(apart, budget, limits, asked.reorder)
    return _noted(found, APART) if found.found else found


def _ask_for(asked: Fitting, found: Answer, target: int) -> Answer:
    """A plan for a smaller budget, in the order of first computes that led to this one."""
    quiet = asked.limits.silent().share(AGAIN)
    again = bool(asked.reorder) or REORDERED in found.schedule.result.notes
    fewer = asked.ask(found.subject, target, quiet, again)
    if fewer.found or again or asked.reorder is not None or asked.late:
        return fewer
    return asked.ask(found.subject, target, quiet, True)


def _settled(asked: Fitting, found: Answer) -> Answer | None:
    """The same computes in another order, if its model fits."""
    order = found.schedule.plan.order() if found.schedule.plan else ()
    problem = in_units(found.subject.problem, asked.allocator.unit)
    clock = Clock(GRACE) if asked.late else asked.limits.clock.share(SETTLING)
    settled = asked.allocator.settle(problem, order, _room(asked, found), asked.limits.seed, clock)
    other = _taking(asked, found, settled)
    return other and _noted(other, MOVED)


def _lowered(asked: Fitting, found: Answer) -> Answer:
    """The same plan in as low a block as some of the time gets, with ops moved about if that takes it lower."""
    places = found.placement
    if places is None or places.block <= places.bound or asked.late:
        return found
    clock = asked.limits.clock.share(LOWERING)
    target = asked.counted(found) - places.block + places.bound
    if other := _settled(replace(asked, budget=target, limits=replace(asked.limits, clock=clock)), found):
        return other
    lower = promised(found, asked.session, clock=clock)
    return lower if asked.counted(lower) < asked.counted(found) else found


def _walked(asked: Fitting, found: Answer) -> Answer | None:
    if not _may_be_walked(asked.method):
        return None
    clock = asked.limits.clock.share(WALKING)
    room = _room(asked, found)
    order = asked.allocator.walk(found.subject.problem, asked.budget, room, asked.limits.seed, clock)
    other = _taking(asked, found, order)
    return None if other is None else replace(other, made_by="evict")


def _room(asked: Fitting, found: Answer) -> int:
    """What the allocator has for the plan itself."""
    if found.placement is not None:
        return asked.budget - asked.counted(found) + found.placement.block
    prediction = _rewritten(found, asked.session).prediction
    added = additions(asked.session, found.subject.problem)
    return asked.budget - prediction.problem.resident - prediction.rounding - added


def _taking(asked: Fitting, found: Answer, order: tuple[int, ...] | None) -> Answer | None:
    """The answer with another order, if its model fits."""
    if order is None:
        return None
    plan, outcome = evaluate(found.subject.problem, order)
    result = replace(found.schedule.result, order=order)
    other = replace(found, schedule=replace(found.schedule, plan=plan, outcome=outcome, result=result))
    other = promised(other, asked.session, asked.budget, Clock(AFRESH))  # it was seen to have places
    return other if asked.fits(other) else None


def _noted(found: Answer, note: str) -> Answer:
    """The answer with one more note, once."""
    result = found.schedule.result
    notes = tuple(dict.fromkeys((*result.notes, note)))
    return replace(found, schedule=replace(found.schedule, result=replace(result, notes=notes)))


def _status(asked: Fitting, found: Answer, result: Result) -> Status:
    """Another plan than the one that was proved may be as good as that."""
    assert found.schedule.outcome is not None
    for status, bound in ((Status.OPTIMAL, result.bound_any_order), (Status.ORDER_OPTIMAL, result.bound)):
        if bound is not None and found.schedule.outcome.cost <= bound * (1 + asked.limits.gap):
            return status
    return Status.FEASIBLE


def _to(asked: Fitting, first: Answer, found: Answer) -> Answer:
    """The answer found as one to the question that was asked, whose bounds are the first answer's."""
    found = replace(found, budget=asked.budget, limits=asked.limits, seconds=asked.limits.clock.elapsed())
    if not found.found:
        return found
    proved = first.schedule.result
    if asked.fits(found):
        found = _lowered(asked, found)
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
