"""An eviction walk: it follows the first computes, evicts when there is no room, and recomputes what is missing.

The walk takes milliseconds. It is greedy with a known future. It evicts the value of least recompute_cost^a / (size^b *
distance^c). The recompute cost counts the ancestors that would have to be rebuilt. The distance is that to the next
use, by a first compute or by the rebuilding of something missing. The order found may be over its budget; `measure`
tells.

Invariant: nodes are first computed in the order given, and the walk never counts less in memory than the order will
hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers._loops import walk_through
from solvers.clock import Clock
from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.halting import halting
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class Rule:
    """The parameters of evictions."""

    cost: float = 1.0
    size: float = 1.0
    distance: float = 1.0
    depth_first: bool = False  # rebuild in depth-first order instead of the order given
    noise: float = 0.0
    backward: float = 1e4  # the factor on the score of a backward value
    hint: float = 1e4  # the factor on the score of a value that the hints keep


RULES = tuple(
    Rule(cost, size, distance, depth)
    for depth, cost, size, distance in product((False, True), (1.0, 0.5), (1.0, 0.5, 0.0), (0.0, 1.0, 0.5))
)


def some_rules(nodes: int, walked: int, fewest: int = 1) -> tuple[Rule, ...]:
    """The first of them: as many as walk through so many nodes in all, but so many at least."""
    return RULES[: max(fewest, walked // max(1, nodes))]


class Scoring(NamedTuple):
    """The score of a value: the powers of recompute cost and distance, the weights, and the values kept for later."""

    weight: NDArray[np.float64]
    cost_power: float
    distance_power: float
    keep: NDArray[np.bool_]  # group, value
    hint: float


class Hints(NamedTuple):
    """`keep[group[stage], value]`: the value is wanted beyond the end of the stage's group."""

    group: Ints
    keep: NDArray[np.bool_]


class Evictor:
    """Runs eviction walks on one problem."""

    def __init__(self, problem: Problem) -> None:
        self.count = len(problem.nodes)
        self.arrays: Arrays = arrays_of(problem.ended())
        self.no_hints = Hints(np.zeros(self.count + 1, np.int64), np.zeros((1, len(problem.sizes)), np.bool_))

    def run(
        self, budget: int, rule: Rule, seed: int = 0, hints: Hints | None = None, clock: Clock | None = None
    ) -> Ints:
        """An order that tries to fit; empty if rebuilding went round in circles, or if the clock interrupts the
        walk."""
        size = np.maximum(self.arrays.size, 1).astype(np.float64)
        weight = size**-rule.size
        if rule.noise:
            random = np.random.default_rng(seed)
            weight *= np.exp(rule.noise * random.standard_normal(len(size)))
        if len(size):
            weight[self.arrays.backward[self.arrays.writer]] *= rule.backward
        group, keep = hints or self.no_hints
        scoring = Scoring(weight, rule.cost, rule.distance, keep, rule.hint)
        with halting(clock) as halt:
            order, looks = walk_through(self.arrays, budget, scoring, group, rule.depth_first, halt)
        if clock is not None:
            walked = max(len(order), self.count) * (1 + len(self.arrays.reads) // max(1, self.count))
            clock.spend(walked=walked, looks=looks)
        return order
