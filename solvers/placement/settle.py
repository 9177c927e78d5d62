"""Orders that run in an arena of a given size, whose free memory is in pieces.

Invariant: what comes out is legal and runs in the arena, as `arena` has it; ops are only moved or taken from walks that
evict, and how much is tried is counted in steps, so that without a time-out the answer depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from solvers.clock import Clock
from solvers.orders.evict import RULES, Evictor
from solvers.placement.placed import placement_of
from solvers.placement.region import stuck_at
from solvers.plan import Compute, IllegalOrder, Plan, lower
from solvers.problem import Problem
from solvers.reductions.views import reduced
from solvers.simulate import simulate

STEPS = 400_000  # computes lowered in moving ops about
NEAR = 60  # computes before the one that found no room, where half of the moves are made
FAR = 8  # places that an op is moved by
LEVELS = 12  # budgets at which walks are tried
WALKED = 60_000  # computes walked in all


def settled(problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> tuple[int, ...] | None:
    """The order with ops moved a few places until it runs in `room` bytes; None if that did not help."""
    random = Random(seed)
    best = list(order)
    reached = _reached(problem, best, room)
    for _ in range(STEPS // max(1, len(best))):
        if reached is None:
            return tuple(best)
        if clock.over():
            break
        first = max(0, reached - NEAR) if random.random() < 0.5 else 0
        source = random.randint(first, reached)
        target = min(max(0, source + random.choice((-1, 1)) * random.randint(1, FAR)), len(best) - 1)
        tried = best.copy()
        tried.insert(target, tried.pop(source))
        try:
            now = _reached(problem, tried, room)
        except IllegalOrder:
            continue
        if now is None or now >= reached:
            best, reached = tried, now
    return tuple(best) if reached is None else None


def _reached(problem: Problem, order: Sequence[int], room: int) -> int | None:
    """The number of the compute that finds no room in the arena; None if all do."""
    plan = lower(problem, order)
    place = stuck_at(problem, plan, room)
    return None if place is None else min(_computes(plan, place), len(order) - 1)


def _computes(plan: Plan, place: int) -> int:
    return sum(isinstance(statement, Compute) for statement in plan.statements[:place])


def walked(problem: Problem, budget: int, room: int, seed: int, clock: Clock) -> tuple[int, ...] | None:
    """The cheapest order that evicting walks find for `budget` or less and that runs in `room` bytes, if any."""
    return _cheapest(problem, budget, seed, clock, lambda plan: stuck_at(problem, plan, room) is None)


def walked_in_block(problem: Problem, budget: int, room: int, seed: int, clock: Clock) -> tuple[int, ...] | None:
    """The same where all places are planned, of what largest-first places within `room` bytes."""
    return _cheapest(problem, budget, seed, clock, lambda plan: placement_of(problem, plan, effort=0).block <= room)


def _cheapest(
    problem: Problem, budget: int, seed: int, clock: Clock, fits: Callable[[Plan], bool]
) -> tuple[int, ...] | None:
    best: tuple[int, tuple[int, ...]] | None = None
    for order in _walks(problem, budget, seed, clock):
        try:
            plan = lower(problem, order)
        except IllegalOrder:  # a walk that got stuck
            continue
        outcome = simulate(problem, plan)
        if outcome.peak <= budget and (best is None or outcome.cost < best[0]) and fits(plan):
            best = outcome.cost, order
    return best[1] if best else None


def _walks(problem: Problem, budget: int, seed: int, clock: Clock) -> Iterator[tuple[int, ...]]:
    smaller = reduced(problem)
    evictor = Evictor(smaller.problem)
    rules = RULES[: max(2, WALKED // LEVELS // max(1, len(smaller.problem.nodes)))]
    for rule in rules:
        for level in range(LEVELS):
            less = budget - (budget - problem.resident) * level // (3 * LEVELS)
            if clock.over():
                return
            yield smaller.expand(evictor.run(less, rule, seed).tolist())
