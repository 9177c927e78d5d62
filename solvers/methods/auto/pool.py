"""The orders that a search works from: some two dozen, the best by what they lack and cost, and unlike each other.

Invariant: no two lack and cost the same, and of one origin there are only a few.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.measure import memory_of

MOST, OF_ONE_ORIGIN = 24, 4


@dataclass(frozen=True, slots=True, order=True)
class Contender:
    """`lack`: bytes over the budget, summed over the computes. `origin`: the order that it was made from, by annealing
    and the like."""

    lack: int
    cost: int
    origin: int
    steps: Ints = field(compare=False)

    @property
    def worth(self) -> tuple[int, int]:
        """What a search makes least."""
        return self.lack, self.cost


class OrderPool:
    def __init__(self, best: Best) -> None:
        self.best = best
        self.entries: list[Contender] = []  # the best first
        self.origins = 0

    def new_origin(self) -> int:
        self.origins += 1
        return self.origins

    def offer(self, order: Ints, by: str, origin: int | None = None) -> Contender | None:
        """Keep the order if it is among the best; `best` hears of it in any case. None if it cannot run."""
        known = self.best.offer(order, by)
        if known is None:
            return None
        lack = 0
        if not self.best.fits(known):
            lack = int(np.maximum(memory_of(self.best.arrays, known.order) - self.best.budget, 0).sum())
        if origin is None:
            origin = self.new_origin()
        entry = Contender(lack, known.cost, origin, known.order)
        if any((entry.lack, entry.cost) == (other.lack, other.cost) for other in self.entries):
            return entry
        ranked = sorted([*self.entries, entry])
        seen: dict[int, int] = {}
        kept: list[Contender] = []
        for one in ranked:
            seen[one.origin] = seen.get(one.origin, 0) + 1
            if seen[one.origin] <= OF_ONE_ORIGIN:
                kept.append(one)
        self.entries = kept[:MOST]
        return entry

    def rivals(self, most: int) -> list[Contender]:
        """The best of each other origin, so many at most; others of the same origin where there is none."""
        first, *others = self.entries
        chosen: dict[int, Contender] = {}
        for entry in others:
            if entry.origin != first.origin:
                chosen.setdefault(entry.origin, entry)
        return list(chosen.values())[:most] or others

    @property
    def first(self) -> Contender:
        return self.entries[0]

    @property
    def worth(self) -> tuple[int, int]:
        return self.first.worth
