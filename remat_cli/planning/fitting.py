"""Plans that fit as they really run: what is added to the model, and what its session's allocator holds, is inside the
budget.

Invariant: an answer that found a plan keeps to the budget that was asked for, and its bounds are of that budget. Where
the allocator cannot place a plan that tightly, ops are moved about, and only then is a plan for less taken; a note says
which.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from remat_cli.model.sessions import Session
from remat_cli.planning.holding import ALLOCATORS, Held, held
from remat_cli.planning.pipeline import REORDERED, Answer, answer, half
from remat_cli.planning.subject import Subject
from remat_cli.rewrite import Rewritten, additions, rewrite
from solvers.problem import Limits, Problem, Solver, Status
from solvers.schedule import evaluate

ROUNDS = 6
STEP = 0.005  # of the budget: the least by which the next try asks for less
SHARE = 0.9  # of the time, for the question itself
LEAST = 0.5  # seconds: with less left, nothing more is asked
MOVED = "ops were moved about, so that what they need can be placed within the budget"
LESS = "made for less than the budget, as the plans for all of it cannot be placed within it"
WALKED = "from a walk that evicts, as no better plan was found whose values can be placed within the budget"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of whom, and of which kind of session the answer is to be."""

    subject: Subject
    budget: int
    method: str
    solver: Solver
    limits: Limits
    session: Session
    reorder: bool | None = False


def fitted(asked: Question) -> Answer:
    """A schedule whose model holds no more than the budget in its session, or why there is none."""
    if asked.subject.graph is None:
        return answer(asked.subject, asked.budget, asked.method, asked.solver, asked.limits, asked.reorder)
    started = time.perf_counter()
    until = _until(asked.limits, started + asked.limits.seconds)
    first = found = _first(asked)
    target = first.budget
    for number in range(ROUNDS):
        if not found.found:
            break
        found = promised(found, asked.session)
        if _fits(found, asked):
            return _as_asked(asked, first, found, started, LESS if number else "")
        if other := _settled(asked, found, until):
            return _as_asked(asked, first, other, started, MOVED)
        first = first if number else found
        target = min(target, _peak(found)) - max((_counted(found) - asked.budget) // 2, int(STEP * asked.budget))
        if until() or target <= asked.subject.problem.resident or _left(asked, started) < LEAST:
            break
        found = _for_less(asked, found, target, started)
    if first.found and (other := _walked(asked, first, until)):
        return _as_asked(asked, first, other, started, WALKED)
    return _as_asked(asked, first, first, started, "")


def promised(found: Answer, session: Session) -> Answer:
    """The answer with all that its model needs."""
    return _with(found, session, held(session, rewritten(found, session)))


def rewritten(found: Answer, session: Session) -> Rewritten:
    graph, plan = found.subject.graph, found.schedule.plan
    assert graph is not None
    assert plan is not None
    return rewrite(graph, found.subject.problem, plan, found.subject.launch, session)


def _with(found: Answer, session: Session, figures: Held) -> Answer:
    return replace(found, session=session, promise=figures.promise, placement=figures.placement)


def _counted(found: Answer) -> int:
    assert found.session is not None
    assert found.promise is not None
    return ALLOCATORS[found.session.allocator].counted(found.promise)


def _fits(found: Answer, asked: Question) -> bool:
    return _counted(found) <= asked.budget


def _peak(found: Answer) -> int:
    assert found.schedule.outcome is not None
    return found.schedule.outcome.peak


def _left(asked: Question, started: float) -> float:
    return asked.limits.seconds - (time.perf_counter() - started)


def _until(limits: Limits, end: float) -> Callable[[], bool]:
    return lambda: limits.stopped() or time.perf_counter() > end


def _first(asked: Question) -> Answer:
    """The question itself, with room for what the rewriting may add; without, where that much less cannot be had."""
    limits = replace(asked.limits, seconds=SHARE * asked.limits.seconds)
    spare = additions(asked.session, asked.subject.problem)
    found = _with_bits(asked, asked.budget - spare, limits)
    if found.status is not Status.INFEASIBLE or not spare:
        return found
    return _with_bits(asked, asked.budget, limits)


def _with_bits(asked: Question, budget: int, limits: Limits) -> Answer:
    """Schedule what is fused by default as one, where that is asked; op by op only if that leads to no plan."""
    subject = asked.subject
    started = time.perf_counter()
    if not subject.problem.inner:
        return answer(subject, budget, asked.method, asked.solver, limits, asked.reorder)
    found = answer(subject, budget, asked.method, asked.solver, half(limits), asked.reorder)
    if found.found or limits.stopped():
        return found
    apart = replace(subject, problem=replace(subject.problem, inner=frozenset()))
    rest = replace(limits, seconds=max(0.0, limits.seconds - (time.perf_counter() - started)))
    found = answer(apart, budget, asked.method, asked.solver, rest, asked.reorder)
    note = "ops that default options fuse are scheduled apart, so their results may differ in the last bits"
    return _noted(found, note) if found.found else found


def _for_less(asked: Question, found: Answer, target: int, started: float) -> Answer:
    """A plan for less, in the order of first computes that led to one before."""
    quiet = replace(asked.limits, seconds=_left(asked, started), report=Limits().report)
    again = bool(asked.reorder) or REORDERED in found.schedule.result.notes
    fewer = answer(found.subject, target, asked.method, asked.solver, quiet, again)
    if fewer.found or again or asked.reorder is not None or _left(asked, started) < LEAST:
        return fewer
    quiet = replace(quiet, seconds=_left(asked, started))
    return answer(found.subject, target, asked.method, asked.solver, quiet, True)


def _settled(asked: Question, found: Answer, until: Callable[[], bool]) -> Answer | None:
    order = found.schedule.plan.order() if found.schedule.plan else ()
    settle = ALLOCATORS[asked.session.allocator].settle
    return _taking(asked, found, settle(_problem(found), order, _room(asked, found), asked.limits.seed, until))


def _walked(asked: Question, found: Answer, until: Callable[[], bool]) -> Answer | None:
    walk = ALLOCATORS[asked.session.allocator].walk
    order = walk(_problem(found), asked.budget, _room(asked, found), asked.limits.seed, until)
    return _taking(asked, found, order)


def _problem(found: Answer) -> Problem:
    return found.subject.problem


def _room(asked: Question, found: Answer) -> int:
    """What the allocator has for the plan itself."""
    prediction = rewritten(found, asked.session).prediction
    added = additions(asked.session, found.subject.problem)
    return asked.budget - prediction.problem.resident - prediction.rounding - added


def _taking(asked: Question, found: Answer, order: tuple[int, ...] | None) -> Answer | None:
    """The answer with another order, if its model fits."""
    if order is None:
        return None
    plan, outcome = evaluate(found.subject.problem, order)
    result = replace(found.schedule.result, order=order)
    other = replace(found, schedule=replace(found.schedule, plan=plan, outcome=outcome, result=result))
    other = promised(other, asked.session)
    return other if _fits(other, asked) else None


def _noted(found: Answer, note: str) -> Answer:
    result = found.schedule.result
    return replace(found, schedule=replace(found.schedule, result=replace(result, notes=(*result.notes, note))))


def _as_asked(asked: Question, first: Answer, found: Answer, started: float, note: str) -> Answer:
    """The answer found as one to the question itself, whose bound is that of the first."""
    found = replace(found, budget=asked.budget, limits=asked.limits, seconds=time.perf_counter() - started)
    if not found.found:
        return found
    proved = first.schedule.result
    result = replace(found.schedule.result, bound=proved.bound, peak_bound=proved.peak_bound)
    if not _fits(found, asked):
        result = replace(result, status=Status.UNKNOWN)
    elif note:
        result = replace(result, status=Status.FEASIBLE, notes=(*result.notes, note))
    return replace(found, schedule=replace(found.schedule, result=result))
