"""Makes a candidate fit: as it is, with its ops moved about, in a block that was packed for longer, or holding less.

Invariant: what a repaired candidate costs and needs is that of its own order, by `simulate`'s word. Where ops may be
computed again its cost can be another, which its note says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.time_plan import REPLACING_SECONDS, settling_round
from solvers.clock import Clock
from solvers.notes import Note
from solvers.placement.fitting import Order, fitted, moved_about
from solvers.placement.memory import MemoryModel
from solvers.placement.walking import walked

Fit = Callable[[MemoryModel, Sequence[int], int, Clock], Order | None]

# each round asks for less by the excess of the last model, because its session adds to what ops need
SETTLING_ROUNDS = 8
LOWERING_ROUNDS = 6  # rounds of making the block lower


def repair(request: PlanRequest, candidate: Candidate) -> Candidate | None:
    """The candidate as it is, with ops moved about or packed for longer, or else, where any method's plan may answer,
    with some computed again; a placed candidate only as it is."""
    with request.so_far.times.part("placing"):
        if candidate.footprint is not None:
            return candidate if request.fits(candidate) else None
        simply = request.place(candidate, request.time.simply())
        if request.fits(simply):
            return simply
        settled = settle(request, simply, fitted if request.may_walk else moved_about)
        if settled is not None and settled.cost <= simply.cost:
            return settled
        longer = request.place(simply, request.time.longer())
        return longer if request.fits(longer) else settled


def settle(request: PlanRequest, candidate: Candidate, fit: Fit = moved_about) -> Candidate | None:
    """The order made to fit until its model does: with its ops moved about, or in another way.

    Its work is its own: it comes in large steps, and would leave nothing for the search.
    """
    order, target, memory = candidate.order, request.target, request.memory(candidate.subject)
    clock = request.time.settling()
    room, step = _room(request, candidate), 0
    for _ in range(SETTLING_ROUNDS):
        part = settling_round(clock) if target.online else clock
        settled = fit(memory.with_room(room), order, request.limits.seed, part)
        if settled is None:
            return None
        other = _place_again(request, candidate, settled)
        if request.fits(other):
            return other.noted(Note(PlanNote.MOVED if other.cost == candidate.cost else PlanNote.ARRANGED))
        over = request.counted(other) - request.budget
        step = max(over, 2 * step if settled == order else 0)  # the same order keeps to less than it was asked for
        room, order = room - step, settled
        if clock.over():
            return None
    return None


def arrange_cheaper(request: PlanRequest, candidate: Candidate) -> Candidate:
    """The candidate, or a cheaper one that its order leads to where values are placed as requests come, and ops may be
    computed again."""
    if not request.target.online or request.late:
        return candidate
    other = settle(request, candidate, fitted)
    return other if other is not None and other.cost < candidate.cost else candidate


def lower(request: PlanRequest, candidate: Candidate) -> Candidate:
    """The same plan in a lower block, as far as a share of the time allows, with ops moved about if that lowers it
    further.

    Moving ops about lowers the live bytes, so that an even lower block may be enough.
    """
    if request.target.online:
        return candidate
    request = replace(request, limits=request.time.lowering())
    for _ in range(LOWERING_ROUNDS):
        other = None if request.late else _lower_once(request, candidate)
        if other is None:
            break
        candidate = other
    return candidate


def _lower_once(request: PlanRequest, candidate: Candidate) -> Candidate | None:
    """The plan in a lower block than its own, at no more cost, if one exists and is found."""
    assert candidate.footprint is not None
    places = candidate.footprint.placement
    if places is None or places.block <= places.bound:
        return None
    wanted = request.counted(candidate) - places.block + places.bound
    other = settle(replace(request, budget=wanted), candidate) or candidate
    packed = request.target.place(other, clock=request.time.longer())
    best = packed if request.counted(packed) < request.counted(other) else other
    return best if request.counted(best) < request.counted(candidate) else None


def walk(request: PlanRequest, candidate: Candidate) -> Candidate | None:
    """A plan from walks that evict, if its model fits; None where only the method's own plan may answer, or where time
    is up and a known plan answers."""
    if not request.may_walk or (request.late and request.at_hand is not None):
        return None
    clock = request.time.walking()
    memory = request.target.memory(candidate.subject.problem, _room(request, candidate))
    order = walked(memory, request.room, request.limits.seed, clock)
    other = None if order is None else _place_again(request, candidate, order)
    return replace(other, made_by="evict") if other is not None and request.fits(other) else None


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


def _place_again(request: PlanRequest, candidate: Candidate, order: tuple[int, ...]) -> Candidate:
    """The candidate that runs another order, which is known to have places."""
    return request.place(candidate.with_order(order), Clock(REPLACING_SECONDS))
