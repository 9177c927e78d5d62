"""What the process of a rewritten model holds: the allocators of the sessions, and what each must hold for a plan.

Invariant: what an allocator `counted` is what the budget is for, inputs, weights and all that the rewriting added
among it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from remat_cli.checking.trying import Peaks
from remat_cli.model.promise import Promise
from remat_cli.model.sessions import ARENA, OWN, PLANNED, Session
from remat_cli.rewrite import Rewritten
from remat_cli.rewrite.predict import Prediction
from solvers.clock import Clock
from solvers.placement.arranging import arranged
from solvers.placement.growing import grown
from solvers.placement.largest import Placement
from solvers.placement.lifetimes import requests
from solvers.placement.placed import placement_of
from solvers.placement.quiet import settled_in_block
from solvers.placement.region import ALIGNMENT, fits, least_arena
from solvers.placement.settle import walked, walked_in_block, walked_in_pattern
from solvers.problem import Node, Problem

UNSURE = 100  # the part of a default session's live bytes that is kept for what was not foretold
EFFORT = 1  # rounds of packing: a plan that takes more is asked to need less
Settle = Callable[[Problem, Sequence[int], int, int, Clock], tuple[int, ...] | None]
Walk = Callable[[Problem, int, int, int, Clock], tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class Held:
    """`placement`: where each value lies, if that is planned."""

    promise: Promise
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Allocator:
    """`counted`: the figure that a budget is for. `unit`: what it hands out comes in multiples of that many bytes.

    `settle`, `arrange`, `walk`: other orders that such an allocator has room for: of the same computes; the cheapest,
    where they may be others; and afresh. `online`: places are not planned, but as requests come.
    """

    hold: Callable[[Rewritten, int, int | None, Clock | None], Held]
    counted: Callable[[Promise], int]
    unit: int
    settle: Settle
    arrange: Settle
    walk: Walk
    online: bool = True


def in_units(problem: Problem, unit: int) -> Problem:
    """The problem with every size as an allocator takes it."""

    def whole(size: int) -> int:
        return -(-size // unit) * unit

    def node(old: Node) -> Node:
        early = tuple(whole(size) for size in old.early)
        return replace(old, early=early, workspace=sum(early) or whole(old.workspace))

    nodes = tuple(node(old) if old.workspace or old.early else old for old in problem.nodes)
    return replace(problem, nodes=nodes, sizes=tuple(map(whole, problem.sizes)))


def held(
    session: Session, model: Rewritten, aside: int = 0, budget: int | None = None, clock: Clock | None = None
) -> Held:
    """What such a session holds for the model, and `aside` beside its allocator; with a budget, whether that is kept is
    all that is asked."""
    return ALLOCATORS[session.allocator].hold(model, aside, budget, clock)


def _planned(model: Rewritten, aside: int, budget: int | None, clock: Clock | None) -> Held:
    """One block in which everything has its place."""
    prediction, live = model.prediction, model.promise.strict
    fixed = prediction.problem.resident + aside
    room = 0 if budget is None else max(0, budget - fixed)
    placement = placement_of(prediction.problem, prediction.strict, clock, EFFORT, room)
    figures = replace(_by_default(model), live=live, block=placement.block, arena=fixed + placement.block)
    return Held(figures, placement)


def _capped(model: Rewritten, aside: int, budget: int | None, _: Clock | None) -> Held:
    """One region of the runtime's arena, whose free memory is in pieces; not every larger one need do as well."""
    prediction, live = model.prediction, model.promise.strict
    assert live is not None
    total = least_arena(prediction.problem, prediction.strict, live) + prediction.rounding + aside
    if budget is not None and total > budget:
        room = budget - aside - prediction.rounding - prediction.problem.resident
        total = budget if fits(prediction.problem, prediction.strict, room) else total
    return Held(replace(_by_default(model), live=live, arena=total))


def _by_default(model: Rewritten) -> Promise:
    return replace(model.promise, default_arena=strict_arena(model.prediction))


def strict_arena(prediction: Prediction) -> int:
    """What the runtime's own arena holds in the strict session."""
    lifetimes = requests(prediction.problem, prediction.strict).lifetimes
    return prediction.problem.resident + grown((life.start, life.end, life.bytes) for life in lifetimes)


def _own(model: Rewritten, *_: object) -> Held:
    """The runtime's own arena, which nobody caps: what is live there is what can be promised."""
    prediction, live = model.prediction, model.promise.default
    assert live is not None
    total = prediction.problem.resident + grown(prediction.default_lifetimes(model.hidden))
    later = None if prediction.fuses else prediction.later(model.hidden)
    return Held(replace(model.promise, live=live, arena=total, default_arena=total, later_foretold=later))


def tried(session: Session, promise: Promise, peaks: Peaks) -> Promise:
    """What such a session was seen to hold, in place of what was foretold."""
    first, later = peaks
    if session.robust:
        return replace(promise, default=first, live=first, later=later)
    return replace(promise, strict=first, live=first, arena=max(first, promise.arena or first))


def _all(promise: Promise) -> int:
    assert promise.arena is not None
    return promise.arena


def _live(promise: Promise) -> int:
    """What the runtime does with an order of its own is foretold to a fiftieth; what was seen, to the byte."""
    assert promise.live is not None
    if promise.later is not None:
        return max(promise.live, promise.later)
    most = max(promise.live, promise.later_foretold or 0)
    return most + most // UNSURE


ALLOCATORS = {
    PLANNED: Allocator(_planned, _all, 64, settled_in_block, settled_in_block, walked_in_block, online=False),
    ARENA: Allocator(_capped, _all, ALIGNMENT, partial(arranged, once=True), arranged, walked),
    OWN: Allocator(
        _own,
        _live,
        1,
        partial(arranged, once=True, later=True),
        partial(arranged, later=True),
        walked_in_pattern,
    ),
}
