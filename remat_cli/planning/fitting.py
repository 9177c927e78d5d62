"""Plans that fit as they really run: with the constants of their rewriting, and in an arena whose free memory is in
pieces.

Invariant: the answer keeps to the budget that was asked for; where the arena's pieces are in the way, a plan whose ops
were moved about, or one for a smaller budget, stands in, and a note says so. Bounds are those of the budget asked for.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.planning.pipeline import REORDERED, Answer, answer, half
from remat_cli.planning.subject import Subject
from remat_cli.rewrite import Rewritten, rewrite
from solvers.placement.settle import settled, walked
from solvers.problem import Limits, Solver, Status
from solvers.schedule import evaluate

ROUNDS = 6
STEP = 0.005  # of the budget: the least by which the next try asks for less
SHARE = 2 / 3  # of the time, for the question itself
LEAST = 0.5  # seconds: with less left, nothing more is asked
SLACK = 1024  # bytes kept for the constants of guards that another order needs


def fitted(
    subject: Subject, budget: int, method: str, solver: Solver, limits: Limits, reorder: bool | None = False
) -> Answer:
    """Ask for a schedule within `budget` bytes that also runs under a hard cap there.

    A third of the time is kept for making a plan run as it should, and none is taken beyond the limit.
    """
    if subject.graph is None:
        return answer(subject, budget, method, solver, limits, reorder)
    found = replace(_capped(subject, budget, method, solver, limits, reorder), limits=limits)
    if found.promise is None or reorder is False or _late(limits):
        return found
    before = _rewritten(found).baseline.default
    if before is None or (found.promise.default or 0) < before:
        return found
    return _below(found, before, method, solver, limits) or found


def _late(limits: Limits) -> bool:
    return limits.clock.over() or limits.clock.left() < LEAST


def _below(found: Answer, before: int, method: str, solver: Solver, limits: Limits) -> Answer | None:
    """A plan that needs less than the model by default, whose order of that session may need less than the file's."""
    for share in (0.97, 0.9):
        target = min(found.budget, int(share * before))
        if _late(limits):
            return None
        other = answer(found.subject, target, method, solver, limits.silent(), True)
        if not other.found:
            return None
        model = _rewritten(other)
        if not _holds(model, found.budget):
            moved = _moved(other, found.budget, _room(model, other, found.budget), limits)
            other = moved or other
            model = _rewritten(other)
        if (model.promise.default or 0) < before and _holds(model, found.budget):
            how = f"made for {target} bytes, as the order of default options needs no more than {before} without a plan"
            return _promising(_noted(found, other, how), model)
    return None


def _capped(subject: Subject, budget: int, method: str, solver: Solver, limits: Limits, reorder: bool | None) -> Answer:
    first = _with_bits(subject, budget, method, solver, limits.share(SHARE), reorder)
    if not first.found:
        return first
    found, best, target = first, None, budget
    for number in range(ROUNDS):
        model = _rewritten(found)
        found = _promising(found, model)
        over = max(0, (model.promise.strict or 0) - budget)
        if not over and _holds(model, budget):
            return _stands_in(first, found, _made_for(found)) if number else found
        if other := _moved(found, budget, _room(model, found, budget), limits):
            return _stands_in(first, other, "with ops moved about")
        best = best or (None if over else found)
        missing = max(over, (model.promise.arena or budget) - budget)
        assert found.schedule.outcome is not None
        target = min(target, found.schedule.outcome.peak) - max(over, missing // 2, int(STEP * budget))
        asked = limits.silent()
        if target <= subject.problem.resident or _late(limits):
            break
        again = bool(reorder) or REORDERED in found.schedule.result.notes
        fewer = answer(found.subject, target, method, solver, asked, again)
        if not fewer.found and not again and reorder is None:
            fewer = answer(found.subject, target, method, solver, asked, True)
        if not fewer.found:
            break
        found = fewer
    model = _rewritten(found)
    if other := _evicting(found, budget, _room(model, found, budget), limits):
        return _stands_in(first, other, "from a walk that evicts")
    return _does_not_fit(best or first)


def _with_bits(
    subject: Subject, budget: int, method: str, solver: Solver, limits: Limits, reorder: bool | None
) -> Answer:
    """Schedule what is fused by default as one; op by op only if that leads to no plan."""
    if not subject.problem.inner:
        return answer(subject, budget, method, solver, limits, reorder)
    found = answer(subject, budget, method, solver, half(limits), reorder)
    if found.found or limits.clock.over():
        return found
    apart = subject.solving(replace(subject.problem, inner=frozenset()))
    found = answer(apart, budget, method, solver, limits, reorder)
    if not found.found:
        return found
    note = "ops that default options fuse are scheduled apart, so only the strict session promises the same bits"
    result = replace(found.schedule.result, notes=(*found.schedule.result.notes, note))
    return replace(found, schedule=replace(found.schedule, result=result))


def _moved(found: Answer, budget: int, room: int, limits: Limits) -> Answer | None:
    order = found.schedule.plan.order() if found.schedule.plan else ()
    clock = limits.clock.share(1 / (2 * ROUNDS))
    return _taking(found, budget, settled(found.subject.problem, order, room, limits.seed, clock.over))


def _evicting(found: Answer, budget: int, room: int, limits: Limits) -> Answer | None:
    return _taking(found, budget, walked(found.subject.problem, budget, room, limits.seed, limits.clock.over))


def _room(model: Rewritten, found: Answer, budget: int) -> int:
    """What the arena has for the plan itself."""
    added = model.prediction.problem.resident - found.subject.problem.resident
    return budget - found.subject.problem.resident - added - model.prediction.rounding - SLACK


def _taking(found: Answer, budget: int, order: tuple[int, ...] | None) -> Answer | None:
    """The answer with another order, if its model fits."""
    if order is None:
        return None
    plan, outcome = evaluate(found.subject.problem, order)
    result = replace(found.schedule.result, order=order)
    other = replace(found, schedule=replace(found.schedule, plan=plan, outcome=outcome, result=result))
    model = _rewritten(other)
    if (model.promise.strict or 0) > budget or not _holds(model, budget):
        return None
    return _promising(other, model)


def _promising(found: Answer, model: Rewritten) -> Answer:
    return replace(found, promise=model.promise)


def _holds(model: Rewritten, budget: int) -> bool:
    """Whether an arena of the budget's size holds the plan, and every larger one does too.

    That one size of arena happens to do on paper is no promise: it was seen to fail on the runtime by a hair.
    """
    return model.promise.arena is not None and model.promise.arena <= budget


def _made_for(found: Answer) -> str:
    return f"made for {found.budget} bytes"


def _rewritten(found: Answer) -> Rewritten:
    graph, plan = found.subject.graph, found.schedule.plan
    assert graph is not None
    assert plan is not None
    return rewrite(graph, found.subject.problem, plan, found.subject.launch)


def _stands_in(first: Answer, found: Answer, how: str) -> Answer:
    """The later answer, as one to the question that was asked first."""
    note = f"{how}, so that it runs under a hard cap at the budget in an arena whose free memory is in pieces"
    return replace(_noted(first, found, note), seconds=first.limits.clock.elapsed())


def _noted(first: Answer, found: Answer, note: str) -> Answer:
    result = found.schedule.result
    result = replace(result, notes=(*result.notes, note))
    result = replace(result, status=Status.FEASIBLE, bound=first.schedule.result.bound)
    result = replace(result, peak_bound=first.schedule.result.peak_bound)
    return replace(first, schedule=replace(found.schedule, result=result), promise=found.promise)


def _does_not_fit(found: Answer) -> Answer:
    """Say what a hard cap would have to be."""
    promise = found.promise or _rewritten(found).promise
    result = found.schedule.result
    note = f"its peak is within the budget, but under a hard cap on the arena it needs {promise.arena} bytes"
    if promise.strict is not None and promise.strict > found.budget:
        note = f"guards and anchors take {promise.strict - found.budget} bytes more than the budget leaves"
    schedule = replace(found.schedule, result=replace(result, notes=(*result.notes, note)))
    return replace(found, schedule=schedule, promise=promise)
