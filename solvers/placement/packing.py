"""Offsets for lifetimes in one block of memory, so that the block is as small as possible.

Invariant: no two lifetimes meet in time and in address, every offset is a multiple of the alignment, and no block can
be smaller than `bound`. The work is counted, so that without a time-out the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count as count_from

import numpy as np
from numpy.typing import NDArray

from solvers._loops import search_canonical
from solvers.clock import Clock
from solvers.orders.halting import halting
from solvers.placement.canonical import FITS, NEVER, sections
from solvers.placement.lifetimes import ALIGNMENT, Columns, Lifetime, columns
from solvers.placement.lives import Lives
from solvers.placement.lowering import lowered
from solvers.placement.tastes import ranks

Ints = NDArray[np.int64]
EXAMINED = 1_000_000  # items that the search for a height may examine for each unit of effort
SHORT, LONGER = 200_000, 8  # items of its first tries, beside those of all pairs, and how much longer later ones are
NARROWER = 12  # heights tried between the bound and the best
QUICK, SURE, EFFORT = 1, 4, 40  # where other orders are at hand, to know whether an order fits, and where none is
ITEMS_PER_MOVE = 12  # items that take as long to examine as a move of local search
LONG = 2_000_000  # in items: a longer search polls the clock as it goes


@dataclass(frozen=True, slots=True)
class Packing:
    """An offset for each lifetime, in bytes; `height` is the block's, and `bound` what no block can be below."""

    offsets: tuple[int, ...]
    height: int
    bound: int


def pack(
    lifetimes: Sequence[Lifetime],
    alignment: int = ALIGNMENT,
    clock: Clock | None = None,
    effort: int = EFFORT,
    room: int = 0,
) -> Packing:
    """The lowest block found for the lifetimes; empty ones have offset 0 and take nothing.

    `effort`: the work, in lots of ejection (`lowering.py`); without any, only what takes no search.
    `room`: a height that is as good as the bound; the search ends there.
    """
    return pack_columns(columns(lifetimes), alignment, clock, effort, room)


def pack_columns(
    lifetimes: Columns, alignment: int = ALIGNMENT, clock: Clock | None = None, effort: int = EFFORT, room: int = 0
) -> Packing:
    """What `pack` does, with lifetimes as columns."""
    real = lifetimes.real()
    offsets = np.zeros(len(lifetimes.bytes), np.int64)
    if not len(real):
        return Packing(tuple(offsets.tolist()), 0, 0)
    units = _Units(lifetimes.of(real), alignment, clock or Clock())
    placed, bound = units.packed(effort, room // alignment)
    offsets[real] = placed * alignment
    return Packing(tuple(offsets.tolist()), units.height(placed) * alignment, bound * alignment)


def reaches(lifetimes: Columns, room: int, clock: Clock, alignment: int = ALIGNMENT) -> bool:
    """Whether a quick search finds places within `room` bytes in time; `pack` then finds such places too."""
    real = lifetimes.real()
    return not len(real) or _Units(lifetimes.of(real), alignment, clock).reaches(room // alignment)


class _Units:
    """The lifetimes in multiples of the alignment."""

    def __init__(self, lifetimes: Columns, alignment: int, clock: Clock) -> None:
        self.clock, size = clock, -(-lifetimes.bytes // alignment)
        self.lives = Lives(lifetimes.start, lifetimes.end, size)
        self.height, self.length = self.lives.height, lifetimes.end - lifetimes.start
        self.case = sections(self.lives)

    def packed(self, effort: int, room: int) -> tuple[Ints, int]:
        """The best offsets found, and the height that none can be below.

        A search for the bound itself finds it, or proves that there is none, where lifetimes are few; where they are
        many, what comes near is moved about. Then the heights between are searched for.
        """
        bound = int(self.case.held.max())
        best = self.lives.largest_first()
        self.left = EXAMINED * effort
        for rank, most in self._tries():
            if self.height(best) <= max(bound, room) or self._is_over(most):
                break
            found, proved = self._try(max(bound, room), rank, most)
            best = best if found is None else found
            if proved:
                bound = max(bound, room) + 1
        if self.height(best) > max(bound, room) and not self.clock.over():
            best = min(best, lowered(self.lives, max(bound, room), effort, self.clock), key=self.height)
        self.left = 0 if room else EXAMINED * effort
        return self._narrowed(best, bound)

    def _narrowed(self, best: Ints, bound: int) -> tuple[Ints, int]:
        """Bisect the heights that short tries can reach, from the bound to the best."""
        low, tastes = bound, list(ranks(self.case, self.length))
        for _ in range(NARROWER):
            middle = (low + self.height(best)) // 2
            if middle >= self.height(best) or self._is_over(SHORT):
                break
            each = (self._try(middle, rank, SHORT) for rank in tastes if not self._is_over(SHORT))
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

    def reaches(self, room: int) -> bool:
        return bool(self.case.held.max() <= room) and self.height(self.packed(QUICK, room)[0]) <= room

    def _tries(self) -> Iterator[tuple[Ints, int]]:
        """Ranks, and how many items each may examine: all tastes, for longer and longer."""
        tastes = list(ranks(self.case, self.length))
        return ((rank, SHORT * LONGER**turn) for turn in count_from() for rank in tastes)

    def _try(self, height: int, rank: Ints, most: int) -> tuple[Ints | None, bool]:
        """Offsets within the height, or whether it is proved that there are none."""
        offsets, most = np.zeros_like(self.length), self._whole(most)
        with halting(self.clock if most > LONG else None) as halt:
            how, work = search_canonical(self.case, rank, height, most, offsets, halt)
        self.left -= work
        self.clock.spend(moves=work // ITEMS_PER_MOVE)
        return (offsets if how == FITS else None), how == NEVER

    def _whole(self, most: int) -> int:
        return most + len(self.length) ** 2
