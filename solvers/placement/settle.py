"""Orders from walks that evict: the cheapest one whose values have places is taken.

Invariant: the resulting order is legal and runs in the given room; the tries are counted in steps, so that without a
time-out the answer depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from solvers.clock import Clock
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.evict import RULES, Evictor
from solvers.orders.measure import ILLEGAL, measure
from solvers.placement.lifetimes import requests
from solvers.placement.pattern import held_later
from solvers.placement.placed import placement_of
from solvers.plan import Plan, lower
from solvers.problem import Problem
from solvers.reductions.views import reduced
from solvers.simulate import simulate

LEVELS = 12  # budgets for walks
WALKED = 60_000  # computes walked in all
WALKING = 0.5  # the greatest share of the time


def walk_in_block(problem: Problem, budget: int, room: int, seed: int, clock: Clock) -> tuple[int, ...] | None:
    """The cheapest order that evicting walks find for `budget` or less, and whose values largest-first places within
    `room` bytes of one block, if any."""
    return _cheapest(problem, budget, seed, clock, lambda plan: placement_of(problem, plan, effort=0).block <= room)


def walk_in_pattern(problem: Problem, budget: int, room: int, seed: int, clock: Clock) -> tuple[int, ...] | None:
    """The cheapest such order of walks whose later runs in a default session hold no more than `room` bytes, if any."""
    return _cheapest(problem, budget, seed, clock, lambda plan: held_later(requests(problem, plan)) <= room)


def _cheapest(
    problem: Problem, budget: int, seed: int, clock: Clock, fits: Callable[[Plan], bool]
) -> tuple[int, ...] | None:
    """Run all walks first, which is quick, and then take the cheapest order that fits."""
    smaller = reduced(problem)
    for _, order in sorted(_walks(smaller.problem, budget, seed, clock.share(WALKING)), key=lambda pair: pair[0]):
        if clock.over():
            return None
        expanded = smaller.expand(order.tolist())
        plan = lower(problem, expanded)
        if simulate(problem, plan).peak <= budget and fits(plan):
            return expanded
    return None


def _walks(problem: Problem, budget: int, seed: int, clock: Clock) -> Iterator[tuple[int, Ints]]:
    """Orders within the budget, each with its cost, from walks within smaller and smaller budgets."""
    evictor, arrays = Evictor(problem), arrays_of(problem)
    rules = RULES[: max(2, WALKED // LEVELS // max(1, len(problem.nodes)))]
    for rule in rules:
        for level in range(LEVELS):
            if clock.over():
                return
            order = evictor.run(budget - (budget - problem.resident) * level // (3 * LEVELS), rule, seed)
            cost, peak = measure(arrays, order) if len(order) else (0, ILLEGAL)
            if peak != ILLEGAL and peak <= budget:
                yield cost, order
