"""An answer with all its model needs in its session: simply, with its ops moved about, or in a lower block.

Invariant: only what computes, and where its values lie, changes; what it costs never does, but for a walk's.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.model.sessions import Session
from remat_cli.planning.asking import Fitting, noted
from remat_cli.planning.holding import held, in_units
from remat_cli.planning.pipeline import Answer
from remat_cli.rewrite import Rewritten, additions, rewrite
from solvers.clock import Clock
from solvers.registry import METHODS
from solvers.schedule import evaluate

SETTLING = 0.7  # of what is left, for moving ops about
ONCE = 0.4  # of that, where one time may not be enough
SETTLINGS = 8  # times, each for as much less as the model of the last was over: its session adds to what ops need
LOWERINGS = 6  # times
LOWERING = 0.5  # of what is left at the end, for a block that is lower than it must be
WALKING = 0.3  # of it, for walks: the plan of last resort
GRACE = 2.0  # seconds that what was found has to be placed even then
AFRESH = 20.0  # seconds, whatever time it is, to find places again that were found already
ARRANGED = "ops were moved about and computed again until all runs in the arena; bounds are of the order before that"
MOVED = "ops were moved about, at no cost, so that all they need can be placed; bounds are of the order before that"


def promised(found: Answer, session: Session, budget: int | None = None, clock: Clock | None = None) -> Answer:
    """The answer with all that its model needs in such a session; with a budget, as tightly as that asks."""
    figures = held(session, _rewritten(found, session, budget), found.subject.aside(session), budget, clock)
    return replace(found, session=session, promise=figures.promise, placement=figures.placement)


def cost(found: Answer) -> int:
    assert found.schedule.outcome is not None
    return found.schedule.outcome.cost


def _rewritten(found: Answer, session: Session, budget: int | None = None) -> Rewritten:
    graph, plan = found.subject.graph, found.schedule.plan
    assert graph is not None
    assert plan is not None
    return rewrite(graph, found.subject.problem, plan, found.subject.launch, session, budget=budget)


def placed(asked: Fitting, found: Answer) -> Answer | None:
    """The answer with all it needs within the budget: at once, or its ops moved about, or after a longer search."""
    simply = promised(found, asked.session, asked.budget, asked.limits.clock.within(0))
    if asked.fits(simply):
        return simply
    if other := _settled(asked, simply):
        return other
    longer = promised(found, asked.session, asked.budget, asked.limits.clock.share(SETTLING))
    return longer if asked.fits(longer) else None


def cheaper(asked: Fitting, found: Answer) -> Answer:
    """The plan, or what its order leads to in an arena, where computes may go as well."""
    if not asked.allocator.online or asked.late:
        return found
    other = _settled(asked, found)
    return other if other is not None and cost(other) < cost(found) else found


def _settled(asked: Fitting, found: Answer) -> Answer | None:
    """The order after it was moved about until its model fits; in an arena ops may be computed again besides."""
    order = found.schedule.plan.order() if found.schedule.plan else ()
    problem = in_units(found.subject.problem, asked.allocator.unit)
    clock = Clock(GRACE) if asked.late else asked.limits.clock.share(SETTLING)
    move = asked.allocator.arrange if _may_be_walked(asked.method) else asked.allocator.settle
    room, step = _room(asked, found), 0
    for _ in range(SETTLINGS):
        settled = move(problem, order, room, asked.limits.seed, clock.share(ONCE) if asked.allocator.online else clock)
        if settled is None:
            return None
        other = _with_order(asked, found, settled)
        if asked.fits(other):
            return noted(other, MOVED if cost(other) == cost(found) else ARRANGED)
        over = asked.counted(other) - asked.budget
        step = max(over, 2 * step if settled == order else 0)  # the same order keeps to less than it was asked for
        room, order = room - step, settled
        if clock.over():
            return None
    return None


def lowered(asked: Fitting, found: Answer) -> Answer:
    """The same plan in as low a block as some of the time gets, with ops moved about if that takes it lower.

    Ops that are moved about hold less at once, so that an even lower block may do.
    """
    asked = replace(asked, limits=asked.limits.share(LOWERING))
    for _ in range(LOWERINGS):
        other = None if asked.late else _lower(asked, found)
        if other is None:
            break
        found = other
    return found


def _lower(asked: Fitting, found: Answer) -> Answer | None:
    """The plan in a lower block than it has, if there is one and it is found."""
    places = found.placement
    if places is None or places.block <= places.bound:
        return None
    target = asked.counted(found) - places.block + places.bound
    other = _settled(replace(asked, budget=target), found) or found
    packed = promised(other, asked.session, clock=asked.limits.clock.share(SETTLING))
    best = packed if asked.counted(packed) < asked.counted(other) else other
    return best if asked.counted(best) < asked.counted(found) else None


def walked(asked: Fitting, found: Answer) -> Answer | None:
    if not _may_be_walked(asked.method):
        return None
    clock = asked.limits.clock.share(WALKING)
    room = _room(asked, found)
    order = asked.allocator.walk(found.subject.problem, asked.room, room, asked.limits.seed, clock)
    other = _taking(asked, found, order)
    return None if other is None else replace(other, made_by="evict")


def _may_be_walked(method: str) -> bool:
    """Whether a plan by any means is wanted. The papers' methods answer for themselves, or not at all."""
    return method in METHODS and METHODS[method].may_reorder


def _room(asked: Fitting, found: Answer) -> int:
    """What the allocator has for the plan itself."""
    if found.placement is not None:
        return asked.budget - asked.counted(found) + found.placement.block
    prediction = _rewritten(found, asked.session).prediction
    added = additions(asked.session, found.subject.problem)
    return asked.room - prediction.problem.resident - prediction.rounding - added


def _taking(asked: Fitting, found: Answer, order: tuple[int, ...] | None) -> Answer | None:
    """The answer with another order, if its model fits."""
    other = None if order is None else _with_order(asked, found, order)
    return other if other is not None and asked.fits(other) else None


def _with_order(asked: Fitting, found: Answer, order: tuple[int, ...]) -> Answer:
    plan, outcome = evaluate(found.subject.problem, order)
    result = replace(found.schedule.result, order=order)
    other = replace(found, schedule=replace(found.schedule, plan=plan, outcome=outcome, result=result))
    return promised(other, asked.session, asked.budget, Clock(AFRESH))  # it was seen to have places
