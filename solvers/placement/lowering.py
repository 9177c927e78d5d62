"""Thousands of lifetimes in a lower and lower block: the large ones first, then the small ones in the gaps.

Nearly all of the memory is that of few lifetimes. So those that are large beside the block are moved about by
themselves (`ejecting.hpp`), to one height after the other; the small ones then fill the gaps, and all are moved about
together if that leaves some above.

Invariant: no two lifetimes meet in time and in address, and a block is never higher than the one before. The work is
counted, so that without a time-out the answer is always the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers._loops import place_by_ejection, place_in_order
from solvers.clock import Clock
from solvers.orders.halting import halting

Ints = NDArray[np.int64]
LEVELS = 3000, 30_000  # times a lifetime goes into the block: the large ones come first
MOST_OF_ALL = 0.8  # lifetimes that are placed before all are
STEP = 0.1  # of the height above the goal, by which the next height is lower
WORK = 70_000_000  # lifetimes looked at, for each unit of effort and each level
LOOKS_PER_MOVE = 100  # looks at a lifetime that take as long as a move of local search
SIZE_POWER, LENGTH_POWER = 0.5, 0.25  # what it is worth not to take out a lifetime of so much size and length


class Lowering:
    """Lifetimes in whole units, and the best places for them so far."""

    def __init__(self, start: Ints, end: Ints, size: Ints, clock: Clock) -> None:
        self.start, self.end, self.size, self.clock = start, end, size, clock
        self.length = end - start

    def run(self, goal: int, effort: int) -> Ints:
        """Offsets, at best below the goal: the height that no block need be below."""
        largest_first = np.lexsort((self.start, -self.length, -self.size))
        best = self._placed(largest_first)
        placed, work = largest_first[:0], 0
        for level in LEVELS:
            large = np.flatnonzero(self.size * level >= goal)
            if not len(placed) < len(large) <= MOST_OF_ALL * len(self.size):
                continue
            part = Lowering(self.start[large], self.end[large], self.size[large], self.clock)
            ranks = np.full(len(self.size), -1)
            ranks[large] = np.arange(len(large))
            begun = part._filled(ranks[placed], np.lexsort((part.start, -part.length, -part.size)))
            lowered, work = part._lowered(begun, goal, work + WORK * effort)
            placed = large[np.argsort(lowered, kind="stable")]
        best = min(best, self._filled(placed, largest_first), key=self._height)
        return self._lowered(best, goal, work + WORK * effort)[0]

    def _lowered(self, offsets: Ints, goal: int, work: int) -> tuple[Ints, int]:
        """The same or better places, and the work that is left."""
        more = (self.size / self.size.max()) ** SIZE_POWER * (self.length / self.length.max()) ** LENGTH_POWER
        weight, seed = more.copy(), 0
        while (height := self._height(offsets)) > goal and work > 0 and not self.clock.over():
            tried, seed = offsets.copy(), seed + 1
            wanted = max(goal, int(height - max(1, (height - goal) * STEP)))
            with halting(self.clock) as halt:
                left, used = place_by_ejection(
                    self.start, self.end, self.size, weight, more, wanted, tried, seed, work, halt
                )
            work -= used
            self.clock.spend(moves=used // LOOKS_PER_MOVE)
            if not left:
                offsets = tried
        return offsets, work

    def _filled(self, placed: Ints, order: Ints) -> Ints:
        """All places: those placed already, by offset, no higher than before; then the others in order."""
        waits = np.ones(len(self.size), bool)
        waits[placed] = False
        return self._placed(np.concatenate((placed, order[waits[order]])))

    def _placed(self, order: Ints) -> Ints:
        offsets = np.zeros(len(self.size), np.int64)
        place_in_order(order, self.start, self.end, self.size, np.iinfo(np.int64).max, offsets)
        return offsets

    def _height(self, offsets: Ints) -> int:
        return int((offsets + self.size).max())
