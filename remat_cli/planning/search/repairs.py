"""Makes a candidate fit: as it is, with its ops moved about, or holding less.

Invariant: what a repaired candidate costs and needs is that of its own order, by `simulate`'s word. Where ops may be
computed again its cost can be another, which its note says.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TypeAlias

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.time_plan import REPLACING_SECONDS
from solvers.clock import Clock
from solvers.coroutines import run
from solvers.notes import Note
from solvers.placement.fitting import Fitting, fitted, moved_about
from solvers.placement.memory import MemoryModel
from solvers.placement.walking import walked

Fit: TypeAlias = Callable[[MemoryModel, Sequence[int], int, Clock], Fitting]
Repairing: TypeAlias = Generator[bool, None, Candidate | None]  # a step says whether places are known

# each round asks for less by the excess of the last model, because its session adds to what ops need
SETTLING_ROUNDS = 8


def repair(request: PlanRequest, candidate: Candidate, clock: Clock) -> Repairing:
    """The candidate as it is or with ops moved about, or else, where any method's plan may answer, with some computed
    again; a placed candidate only as it is."""
    if candidate.footprint is not None:
        return candidate if request.fits(candidate) else None
    simply = request.place(candidate, clock.within(0))
    if request.fits(simply):
        return simply
    yield False
    return (yield from settle(request, simply, clock, fitted if request.may_walk else moved_about))


def settle(request: PlanRequest, candidate: Candidate, clock: Clock, fit: Fit = moved_about) -> Repairing:
    """The order made to fit until its model does: with its ops moved about, or in another way."""
    order, memory = candidate.order, request.memory(candidate.subject)
    room, step = _room(request, candidate), 0
    for _ in range(SETTLING_ROUNDS):
        settled = yield from fit(memory.with_room(room), order, request.limits.seed, clock)
        if settled is None:
            return None
        yield True
        other = _place_again(request, candidate, settled, clock)
        if request.fits(other):
            return other.noted(Note(PlanNote.MOVED if other.cost == candidate.cost else PlanNote.ARRANGED))
        over = request.counted(other) - request.budget
        step = max(over, 2 * step if settled == order else 0)  # the same order keeps to less than it was asked for
        room, order = room - step, settled
        if clock.over():
            return None
    return None


def lower(request: PlanRequest, candidate: Candidate) -> Candidate:
    """The same plan in a lower block, if one is found: with ops moved about, or packed for longer."""
    places = None if candidate.footprint is None else candidate.footprint.placement
    if places is None or places.block <= places.bound or request.late:
        return candidate
    wanted = request.counted(candidate) - places.block + places.bound
    clock = request.time.lowering()
    other = run(settle(replace(request, budget=wanted), candidate, clock)) or candidate
    packed = request.target.place(other, clock=clock)
    return min(candidate, other, packed, key=request.counted)


def walk(request: PlanRequest, candidate: Candidate, clock: Clock) -> Candidate | None:
    """A plan from walks that evict, if its model fits; None where only the method's own plan may answer, or where time
    is up and a known plan answers."""
    if not request.may_walk or (request.late and request.at_hand is not None):
        return None
    memory = request.target.memory(candidate.subject.problem, _room(request, candidate))
    order = walked(memory, request.room, request.limits.seed, clock)
    other = None if order is None else _place_again(request, candidate, order, clock)
    if other is None or not request.fits(other):
        return None
    return replace(other.with_result(replace(other.schedule.result, found_by="walks")), made_by="evict")


def _room(request: PlanRequest, candidate: Candidate) -> int:
    """The bytes that the allocator has for the plan itself."""
    if candidate.model is None and request.target.online:
        candidate = request.place(candidate)
    footprint, subject, target = candidate.footprint, candidate.subject, request.target
    if footprint is not None and footprint.placement is not None:
        return request.budget - request.counted(candidate) + footprint.placement.block
    prediction = (candidate.model or target.rewrite(candidate.subject, candidate.plan)).prediction
    added = target.reserve(subject.problem) + target.added(candidate)
    return request.room - prediction.problem.resident - prediction.rounding - added


def _place_again(request: PlanRequest, candidate: Candidate, order: tuple[int, ...], clock: Clock) -> Candidate:
    """The candidate that runs another order, which is known to have places."""
    return request.place(candidate.with_order(order), Clock(REPLACING_SECONDS, work=clock.work))
