"""The best schedule, among those that cuts lead to, that fits a budget.

Each set of saved values gives orders that keep rebuilt values for longer or shorter. At fixed levels of memory the
cheapest order that fits is polished, which uses the spare memory.

Invariant: monotone in the budget. Which orders are tried, and their results, do not depend on the budget: it only says
up to which level to look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from solvers.methods.mincut.between import between_groups
from solvers.methods.mincut.cuts import Saved
from solvers.methods.mincut.rebuild import FOREVER, Rebuilding
from solvers.orders.arrays import Arrays, Ints
from solvers.orders.best import Best
from solvers.orders.measure import measure
from solvers.orders.polish import polish
from solvers.problem import Problem

REACHES = (FOREVER, 16, 4, 1)  # how many ops ahead a rebuilt value may wait for its next reader
LEVELS = 24
POLISHED = 20_000_000  # computes measured while polishing, all levels together


@dataclass(frozen=True, slots=True)
class CutSchedule:
    """A schedule, with the figure to be minimised."""

    price: int
    cost: int
    peak: int
    order: tuple[int, ...]


@dataclass(slots=True)
class CutSearch:
    """All schedules tried; `known` measures them and reports the cheaper ones."""

    known: Best
    priced: Callable[[tuple[int, ...]], int] | None = None  # None: the cost
    found: dict[tuple[int, ...], CutSchedule] = field(default_factory=dict)

    @property
    def problem(self) -> Problem:
        return self.known.problem

    @property
    def arrays(self) -> Arrays:
        return self.known.arrays

    @property
    def over(self) -> bool:
        return self.known.over()

    @property
    def best(self) -> CutSchedule | None:
        fitting = [one for one in self.found.values() if one.peak <= self.known.budget]
        return min(fitting, key=lambda one: (one.price, one.cost, one.peak), default=None)

    @property
    def leanest(self) -> CutSchedule:
        return min(self.found.values(), key=lambda one: (one.peak, one.price))

    def offer(self, order: Iterable[int], by: str = "cuts") -> None:
        weighed = self.known.offer(np.fromiter(order, np.int64), by)
        assert weighed is not None, "a cut made an order that cannot run"
        key = weighed.steps()
        if key not in self.found:
            price = self.priced(key) if self.priced and self.known.fits(weighed) else weighed.cost
            self.found[key] = CutSchedule(price, weighed.cost, weighed.peak, key)

    def rebuild(self, sets: Iterable[Saved], reaches: Sequence[int] = REACHES) -> None:
        """Offer the orders of every set."""
        rebuilding = Rebuilding.of(self.problem)
        done: set[Saved] = set()
        for saved in sets:
            if saved not in done:
                done.add(saved)
                for reach in reaches:
                    self.offer(rebuilding.order(saved, reach))
            if self.over:
                return

    def polish(self) -> None:
        """At each level up to the budget, drop computes whose copies can be kept after all."""
        for level, start in self._cheapest(lambda one: one.cost):
            most = POLISHED // (LEVELS * len(start.order))
            self.offer(self._polished(np.array(start.order, np.int64), level, most), "polishing")
            if self.over:
                return

    def extend(self, fusion: str) -> None:
        """At each level up to the budget, also recompute between fusion groups, in the schedule that moves the fewest
        bytes."""
        for order in dict.fromkeys(start.order for _, start in self._cheapest(lambda one: one.price)):
            self.offer(between_groups(self.problem, order, fusion))
            if self.over:
                return

    def _cheapest(self, price: Callable[[CutSchedule], int]) -> list[tuple[int, CutSchedule]]:
        """The best schedule for each level, from the highest level that is within the budget."""
        least = self.leanest.peak
        top = max(least, measure(self.arrays, np.arange(len(self.problem.nodes)))[1])
        given = sorted(self.found.values(), key=lambda one: (price(one), one.cost, one.peak, one.order))
        levels = [least + (top - least) * step // LEVELS for step in range(LEVELS, -1, -1)]
        return [
            (level, next(one for one in given if one.peak <= level))
            for level in dict.fromkeys(levels)
            if level <= self.known.budget
        ]

    def _polished(self, order: Ints, level: int, most: int) -> Iterable[int]:
        tried = 0

        def enough() -> bool:
            nonlocal tried
            tried += 1
            return tried > most or self.over

        polished: list[int] = polish(self.arrays, order, level, enough).tolist()
        return polished
