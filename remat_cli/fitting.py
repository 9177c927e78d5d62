"""Plans that fit as they really run: with the constants of their rewriting, and in an arena whose free memory is in
pieces.

Invariant: the answer keeps to the budget that was asked for; where the arena's pieces are in the way, a plan for a
smaller budget stands in, and a note says so. Bounds are those of the budget that was asked for.
"""

from __future__ import annotations

import time
from dataclasses import replace

from remat_cli.pipeline import REORDERED, Answer, answer
from remat_cli.rewrite import Rewritten, rewrite
from remat_cli.subject import Subject
from solvers.problem import Limits, Solver, Status

ROUNDS = 6
DEAR = 0.1  # of the step's time: a plan that costs this much more does not stand in
STEP = 0.005  # of the budget: the least by which the next try asks for less


def fitted(
    subject: Subject, budget: int, method: str, solver: Solver, limits: Limits, reorder: bool | None = False
) -> Answer:
    """Ask for a schedule within `budget` bytes that also runs under a hard cap there."""
    started = time.perf_counter()
    first = answer(subject, budget, method, solver, limits, reorder)
    if subject.graph is None or not first.found:
        return first
    found, best, target = first, None, budget
    for number in range(ROUNDS):
        model = _rewritten(found)
        found = replace(found, promise=model.promise)
        over = max(0, (model.promise.strict or 0) - budget)
        if not over and model.prediction.fits(budget):
            return _stands_in(first, found, started) if number else found
        best = best or (None if over else found)
        missing = max(over, (model.promise.arena or budget) - budget)
        assert found.schedule.outcome is not None
        target = min(target, found.schedule.outcome.peak) - max(missing if number == 0 else over, int(STEP * budget))
        left = limits.seconds - (time.perf_counter() - started)
        if limits.stopped() or target <= subject.problem.resident:
            break
        asked = replace(limits, seconds=max(left, limits.seconds / ROUNDS))
        again = bool(reorder) or REORDERED in first.schedule.result.notes
        found = answer(subject, target, method, solver, replace(asked, report=Limits().report), again)
        if not found.found or _cost(found) - _cost(first) > DEAR * first.baseline.cost:
            break
    return _does_not_fit(best or first)


def _cost(found: Answer) -> int:
    assert found.schedule.outcome is not None
    return found.schedule.outcome.cost


def _rewritten(found: Answer) -> Rewritten:
    graph, plan = found.subject.graph, found.schedule.plan
    assert graph is not None
    assert plan is not None
    return rewrite(graph, found.subject.problem, plan)


def _stands_in(first: Answer, found: Answer, started: float) -> Answer:
    """The later answer, as one to the question that was asked first."""
    result = found.schedule.result
    notes = (
        *result.notes,
        f"made for {found.budget} bytes, so that it runs under a hard cap at the budget in an arena whose free memory "
        "is in pieces",
    )
    result = replace(result, status=Status.FEASIBLE, bound=first.schedule.result.bound, notes=notes)
    result = replace(result, peak_bound=first.schedule.result.peak_bound)
    seconds = time.perf_counter() - started
    return replace(first, schedule=replace(found.schedule, result=result), promise=found.promise, seconds=seconds)


def _does_not_fit(found: Answer) -> Answer:
    """Say what a hard cap would have to be."""
    promise = found.promise or _rewritten(found).promise
    result = found.schedule.result
    note = f"its peak is within the budget, but under a hard cap on the arena it needs {promise.arena} bytes"
    if promise.strict is not None and promise.strict > found.budget:
        note = f"guards and anchors take {promise.strict - found.budget} bytes more than the budget leaves"
    schedule = replace(found.schedule, result=replace(result, notes=(*result.notes, note)))
    return replace(found, schedule=schedule, promise=promise)
