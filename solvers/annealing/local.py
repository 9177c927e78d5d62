"""Goes of annealing over orders with repeats, from the given order or from the best known.

Invariant: the result of a go depends on its number, the seed and the order it starts with, and never on the clock.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from solvers._loops import anneal_orders
from solvers.annealing.cooling import Cooling, Kept
from solvers.clock import Clock
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.halting import halting
from solvers.orders.measure import measure
from solvers.problem import Problem

NOTHING = 1 << 62  # more bytes over budget than any order has
NO_ROOF, NO_PEAK = 1 << 60, -1
TEMPERATURES = (0.15, 0.5, 0.05, 1.5)  # times the mean cost of an op; every other one is cooler
PRICES = (30.0, 3.0, 300.0)  # of a byte over the budget, where 1 is the cost of making an average byte
_DEAREST_FACTOR = 10_000  # the highest price, relative to that at the beginning
_PER_NODE, _FEWEST, _MOST = 400, 2_000, 200_000  # moves of a usual go
_SEED_FACTOR = 1_000_003  # a factor that keeps the seeds of two goes far apart


def usual_moves(nodes: int) -> int:
    """Of one go on a problem of so many nodes."""
    return min(max(_PER_NODE * nodes, _FEWEST), _MOST)


class WentTo(NamedTuple):
    """The order that a go came to, and its bytes over the budget."""

    order: Ints
    over: int


class LocalSearch:
    """The compiled search on one problem and budget, any number of goes at a time. `roof`: bytes over it count many
    times."""

    def __init__(self, problem: Problem, budget: int, seed: int, roof: int | None = None) -> None:
        self.arrays = arrays_of(problem.ended())
        self.nodes = len(self.arrays.cost)
        self.resident = problem.resident
        self._keep(budget, seed, roof)
        self.total = max(1, int(self.arrays.cost.sum()))
        self.price = self.total / max(1, int(self.arrays.size.sum()))

    def _keep(self, budget: int, seed: int, roof: int | None) -> None:
        self.room, self.seed = budget - self.resident, seed
        self.roof = NO_ROOF if roof is None else roof - self.resident

    def within(self, budget: int, seed: int, roof: int | None = None) -> LocalSearch:
        """The search on the same problem within another budget."""
        other = copy(self)
        other._keep(budget, seed, roof)
        return other

    def go(self, order: Ints, number: int, moves: int, clock: Clock, kept: Kept = Kept.NOTHING) -> WentTo:
        """The best order met: the cheapest of those that fit, otherwise the one with the fewest bytes over budget."""
        return self.descend(order, self.usual(number, moves), clock, bool(number // 2 % 2), kept)

    def descend(
        self, order: Ints, cooling: Cooling, clock: Clock, exactly: bool = False, kept: Kept = Kept.NOTHING
    ) -> WentTo:
        """What `go` does. `exactly`: with more room, by what the loop counts too much for the order."""
        ended = self.ended(order)
        peak = self.peak(ended) if exactly else NO_PEAK
        with halting(clock) as halt:
            found = anneal_orders(self.arrays, ended, self.room, self.roof, peak, cooling, kept, halt)
        return WentTo(*found)

    def ended(self, order: Ints) -> Ints:
        """With the node that reads the outputs."""
        return np.append(order, self.nodes - 1)

    def peak(self, ended: Ints) -> int:
        return measure(self.arrays, ended)[1] - self.resident

    def usual(self, number: int, moves: int) -> Cooling:
        """The cooling of a go, by its number alone."""
        price = PRICES[number // len(TEMPERATURES) % len(PRICES)]
        return self.cool(number, moves, TEMPERATURES[number % len(TEMPERATURES)], price)

    def cool(self, number: int, moves: int, temperature: float, price: float) -> Cooling:
        """The cooling of a go. `temperature`: times the mean cost of an op; `price`: of a byte over the budget, where 1
        is the cost of making an average byte."""
        seed = (self.seed * 10_000 + number) * _SEED_FACTOR % (1 << 32)
        price *= self.price
        return Cooling(moves, temperature * self.total / self.nodes, seed, price, _DEAREST_FACTOR * price)
