"""Offsets for lifetimes in one block of memory, so that the block is as small as possible.

They are placed the largest first (`greedy.hpp`), then from the bottom up (`skyline.hpp`), by one taste after the other.
Where the lowest of these blocks is too high, one of the height wanted is searched for (`canonical.py`), which finds it,
or proves that there is none, where lifetimes are few. Where they are many, what is too high is moved about
(`ejecting.hpp`), to one height after the other. Then the heights between are searched for.

Invariant: no two lifetimes meet in time and in address, every offset is a multiple of the alignment, and no block can
be smaller than `bound`. The work is counted, so that without a time-out the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as count_from

import numpy as np

from solvers._loops import place_by_ejection, place_from_bottom, place_in_order, search_canonical
from solvers.clock import Clock
from solvers.orders.arrays import Ints
from solvers.orders.halting import halting
from solvers.placement.canonical import FITS, NEVER, sections
from solvers.placement.lifetimes import ALIGNMENT
from solvers.placement.lives import Lives
from solvers.placement.placed import Placement
from solvers.placement.tastes import ranks

EXAMINED = 1_000_000  # items that the search for a height may examine for each unit of effort
SHORT, LONGER = 200_000, 8  # items of its first tries, beside those of all pairs, and how much longer later ones are
SURE, EFFORT = 4, 40  # where other orders are at hand, and where none is
ITEMS_PER_MOVE = 12  # items that take as long to examine, or to place from the bottom up, as a move of local search
GLANCES_PER_MOVE = 100  # lifetimes looked at by ejection that take as long
STEP = 0.03  # of the height above the goal, by which the next height is lower
LOT = 6_000_000  # lifetimes looked at before the weights are forgotten, where no lower height was reached meanwhile


def pack(
    lives: Lives, alignment: int = ALIGNMENT, clock: Clock | None = None, effort: int = EFFORT, room: int = 0
) -> Placement:
    """The lowest block found for the lifetimes; empty ones have offset 0 and take nothing.

    `effort`: the work, in lots of ejection; without any, only what takes no search.
    `room`: a height that is as good as the bound; the search ends there.
    """
    real, block, bound = lives.real(), 0, 0
    offsets = np.zeros(len(lives.size), np.int64)
    if len(real):
        units = _Units(lives.only(real), alignment, clock or Clock())
        placed, least = units.packed(effort, room // alignment)
        offsets[real] = placed * alignment
        block, bound = units.height(placed) * alignment, least * alignment
    return Placement(block, bound, tuple(zip(lives.size.tolist(), offsets.tolist(), strict=True)))


class _Units:
    """The lifetimes in multiples of the alignment."""

    def __init__(self, lives: Lives, alignment: int, clock: Clock) -> None:
        self.clock, self.lives = clock, Lives(lives.start, lives.end, -(-lives.size // alignment))
        self.height, self.length = self.lives.height, lives.end - lives.start
        self.case = sections(self.lives)
        self.tastes = list(ranks(self.case, self.length))

    def packed(self, effort: int, room: int) -> tuple[Ints, int]:
        """The best offsets found, and the height that none can be below."""
        bound = int(self.case.held.max())
        best = self._greedily(max(bound, room))
        self.left = EXAMINED * effort
        for rank, most in self._tries():
            if self.height(best) <= max(bound, room) or self._is_over(most):
                break
            found, proved = self._try(max(bound, room), rank, most)
            best = best if found is None else found
            if proved:
                bound = max(bound, room) + 1
        best = self._moved_about(best, max(bound, room), LOT * effort)
        self.left = 0 if room else EXAMINED * effort
        return self._narrowed(best, bound)

    def _greedily(self, goal: int) -> Ints:
        """The lowest that takes no search, or the first that is as low as it should be."""
        best = np.zeros_like(self.length)
        place_in_order(np.lexsort((self.lives.start, -self.length, -self.lives.size)), self.lives, best)
        for rank in self.tastes:
            if self.height(best) <= goal or self.clock.over():
                break
            offsets = np.zeros_like(self.length)
            self.clock.spend(moves=place_from_bottom(self.case, rank, offsets) // ITEMS_PER_MOVE)
            best = min(best, offsets, key=self.height)
        return best

    def _tries(self) -> Iterator[tuple[Ints, int]]:
        """Ranks, and how many items each may examine: all tastes, for longer and longer."""
        return ((rank, SHORT * LONGER**turn) for turn in count_from() for rank in self.tastes)

    def _moved_about(self, offsets: Ints, goal: int, work: int) -> Ints:
        """The same or better places. What it is worth not to take a lifetime out grows with its area: it is the small
        and short ones that move about."""
        area = self.lives.size * self.length
        more = np.sqrt(area / area.max())
        weight, seed, lot = more.copy(), 0, LOT
        while (height := self.height(offsets)) > goal and work > 0 and not self.clock.over():
            tried, seed = offsets.copy(), seed + 1
            wanted = max(goal, int(height - max(1, (height - goal) * STEP)))
            with halting(self.clock) as halt:
                left, used = place_by_ejection(self.lives, weight, more, wanted, tried, seed, min(work, lot), halt)
            self.clock.spend(moves=used // GLANCES_PER_MOVE)
            work -= used
            lot -= used
            if not left:
                offsets, lot = tried, LOT
            elif lot <= 0:
                weight, lot = more.copy(), LOT
        return offsets

    def _narrowed(self, best: Ints, bound: int) -> tuple[Ints, int]:
        """Bisect the heights that short tries can reach, from the bound to the best."""
        low = bound
        while (middle := (low + self.height(best)) // 2) < self.height(best) and not self._is_over(SHORT):
            each = (self._try(middle, rank, SHORT) for rank in self.tastes if not self._is_over(SHORT))
            found, proved = next((one for one in each if one[0] is not None or one[1]), (None, False))
            if found is not None:
                best = found
                continue
            bound = middle + 1 if proved else bound
            low = middle + 1
        return best, bound

    def _is_over(self, most: int) -> bool:
        """Whether there is no work or no time left for such a try."""
        return self.left < self._whole(most) or self.clock.over()

    def _try(self, height: int, rank: Ints, most: int) -> tuple[Ints | None, bool]:
        """Offsets within the height, or whether it is proved that there are none."""
        offsets = np.zeros_like(self.length)
        with halting(self.clock) as halt:
            how, work = search_canonical(self.case, rank, height, self._whole(most), offsets, halt)
        self.left -= work
        self.clock.spend(moves=work // ITEMS_PER_MOVE)
        return (offsets if how == FITS else None), how == NEVER

    def _whole(self, most: int) -> int:
        return most + len(self.length) ** 2
