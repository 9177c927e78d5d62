"""Goes of annealing over all orders with repeats, from the order as given or from the best known.

Invariant: where a go leads depends on its number, the seed and the order it begins with, and never on the clock.
"""

from __future__ import annotations

import numpy as np

from solvers._loops import anneal_orders, fill_state
from solvers.clock import Clock
from solvers.methods.auto.layout import BUDGET, EMPTY, HELD, ROOF, SLOTS, blank
from solvers.methods.auto.record import EXCESS, LENGTH, NOTHING, empty_record
from solvers.methods.exact.tables import SIZE, VALUES, pack
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.halting import halting
from solvers.orders.measure import measure
from solvers.problem import Problem

_HEATS = (1e-3, 1e-2, 3e-4, 3e-3)  # of the cost of everything once
_PRICES = (3.0, 30.0, 0.5)  # of a byte over budget, where 1 is what an average byte costs to make
_DEAREST = 10_000  # times the price to begin with
_SEEDS = 1_000_003


class LocalSearch:
    """The compiled search on one problem and budget. `roof`: what is over that as well counts many times."""

    def __init__(self, problem: Problem, budget: int, seed: int, roof: int | None = None) -> None:
        self.arrays = arrays_of(problem.ended())
        self.tables = pack(self.arrays)
        self.nodes = len(self.arrays.cost)
        self.resident = problem.resident
        self.room = budget - problem.resident
        self.roof = EMPTY if roof is None else roof - problem.resident
        self.seed = seed
        self.over = NOTHING  # bytes over budget of what the last go met
        self.state = blank(self.tables, 2 * self.nodes, self.room)
        self.total = max(1, int(self.arrays.cost.sum()))
        sizes = int(self.tables[self.tables[SIZE] : self.tables[SIZE] + self.tables[VALUES]].sum())
        self.price = self.total / max(1, sizes)

    def go(self, order: Ints, number: int, moves: int, clock: Clock, once: bool = False) -> Ints:
        """The best order met: the cheapest of those that fit, else the one with the fewest bytes over budget.

        `once`: nothing more is repeated than is in the order given."""
        state = self.state
        if len(order) + 1 > state[SLOTS] // 4:
            state = self.state = blank(self.tables, 2 * len(order), self.room)
        ended = np.append(order, self.nodes - 1)
        state[BUDGET], state[ROOF] = self.room, self.roof
        fill_state(self.tables, state, ended)
        if number // 2 % 2:  # nothing is taken for what the state counts too much
            counted = int(state[state[HELD] : state[HELD] + state[SLOTS]].max())
            hidden = counted - (measure(self.arrays, ended)[1] - self.resident)
            state[[BUDGET, ROOF]] += hidden
            fill_state(self.tables, state, ended)
        record = empty_record(int(state[SLOTS]))
        hot = _HEATS[number % len(_HEATS)] * self.total
        price = _PRICES[number // len(_HEATS) % len(_PRICES)] * self.price
        seed = (self.seed * 10_000 + number) * _SEEDS
        with halting(clock) as halt:
            prices, cool = (price, _DEAREST * price), (hot, seed % (1 << 32))
            anneal_orders(self.tables, state, record, moves, *cool, *prices, once, halt)
        self.over = int(record.facts[EXCESS])
        length = record.facts[LENGTH]
        return record.steps[: length - 1] if length else order
