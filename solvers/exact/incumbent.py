"""The best order so far.

Invariant: only complete orders whose first computes come in the order given get in, and cost and peak are `measure`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvers.orders.arrays import Arrays, Ints
from solvers.orders.measure import ILLEGAL, measure, trim

NO_PLAN = 1 << 62


class Incumbent:
    """The cheapest order within the budget, and the one of least peak for where there is none."""

    def __init__(self, arrays: Arrays, budget: int, heard: Callable[[], None]) -> None:
        self.arrays = arrays
        self.budget = budget
        self.heard = heard
        self.order: Ints | None = None
        self.cost: int | None = None
        self.peak = 0
        self.least_order: Ints | None = None
        self.least_peak: int | None = None

    def offer(self, order: Ints | Sequence[int]) -> int:
        """Take the order if it is better; its cost, or NO_PLAN if it does not fit."""
        steps = np.asarray(order, dtype=np.int64)
        if not len(steps) or not in_order(steps, len(self.arrays.cost)):
            return NO_PLAN
        steps = trim(self.arrays, steps)
        cost, peak = measure(self.arrays, steps)
        if peak == ILLEGAL:
            return NO_PLAN
        if self.least_peak is None or peak < self.least_peak:
            self.least_order, self.least_peak = steps, peak
        if peak > self.budget:
            return NO_PLAN
        if self.cost is None or (cost, peak) < (self.cost, self.peak):
            better = self.cost is None or cost < self.cost
            self.order, self.cost, self.peak = steps, cost, peak
            if better:
                self.heard()
        return cost


def in_order(order: Ints, count: int) -> bool:
    """Whether the first computes are 0, 1, ... count - 1, in that order."""
    _, first = np.unique(order, return_index=True)
    return len(first) == count and bool(np.all(np.diff(first) > 0)) and int(order.max()) == count - 1
