"""Orders from walks that evict: the cheapest one whose values have places is taken.

Invariant: the resulting order is legal and runs in the given room; the tries are counted in steps, so that without a
time-out the answer depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from solvers.clock import Clock
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.evict import Evictor, some_rules
from solvers.orders.measure import ILLEGAL, measure
from solvers.placement.memory import MemoryModel
from solvers.plan import lower
from solvers.problem import Problem
from solvers.reductions.views import reduced
from solvers.simulate import simulate

LEVELS = 12  # budgets for walks
WALKED = 60_000  # computes walked in all
WALKING = 0.5  # the greatest share of the time


def walked(memory: MemoryModel, budget: int, seed: int, clock: Clock) -> tuple[int, ...] | None:
    """The cheapest order that evicting walks find for `budget` or less and that fits, if any.

    All walks come first, which is quick.
    """
    problem, smaller = memory.problem, reduced(memory.problem)
    for _, order in sorted(_walks(smaller.problem, budget, seed, clock.share(WALKING)), key=lambda pair: pair[0]):
        if clock.over():
            return None
        expanded = smaller.expand(order.tolist())
        if simulate(problem, lower(problem, expanded)).peak <= budget and not memory.lacking(expanded):
            return expanded
    return None


def _walks(problem: Problem, budget: int, seed: int, clock: Clock) -> Iterator[tuple[int, Ints]]:
    """Orders within the budget, each with its cost, from walks within smaller and smaller budgets."""
    evictor, arrays = Evictor(problem), arrays_of(problem)
    rules = some_rules(len(problem.nodes), WALKED // LEVELS, 2)
    for rule in rules:
        for level in range(LEVELS):
            if clock.over():
                return
            order = evictor.run(budget - (budget - problem.resident) * level // (3 * LEVELS), rule, seed)
            cost, peak = measure(arrays, order) if len(order) else (0, ILLEGAL)
            if peak != ILLEGAL and peak <= budget:
                yield cost, order
