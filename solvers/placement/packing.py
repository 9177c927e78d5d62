"""Offsets for lifetimes in one block of memory, so that the block is as small as possible.

Invariant: no two lifetimes meet in time and in address, every offset is a multiple of the alignment, and no block can
be smaller than `bound`. The work is counted, so that without a time-out the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from solvers._loops import search_canonical
from solvers.clock import Clock
from solvers.orders.halting import halting
from solvers.placement.canonical import FITS, NEVER, sections
from solvers.placement.lifetimes import ALIGNMENT, Lifetime
from solvers.placement.lives import Lives
from solvers.placement.lowering import lowered
from solvers.placement.tastes import TASTES, ranked, ranks

Ints = NDArray[np.int64]
ROUND = 200_000  # items that the first round of the search may examine, for each taste
LONGER = 8  # each round is so many times as long as the one before
SHAKEN, SHAKE = 24, 0.2  # more tastes in the first round, by area, each perturbed by about this share
SHAKING = 12_000_000  # items that all of those may examine together
QUICK = 4  # tastes, of all those, where another order is at hand
EFFORT = 3  # rounds
ITEMS_PER_MOVE = 12  # items that take as long to examine as a move of local search
LONG = 2_000_000  # in items: a longer search polls the clock as it goes
NARROWER = 12  # heights tried between the bound and the best
MANY = 2_000  # in lifetimes: from here on the large ones are searched for alone


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

    `effort`: rounds of the search, each `LONGER` times as long as the last; without any, only what takes no search.
    `room`: a height that is as good as the bound; the search ends there.
    """
    real = [k for k, one in enumerate(lifetimes) if one.bytes and one.end > one.start]
    offsets = [0] * len(lifetimes)
    if not real:
        return Packing(tuple(offsets), 0, 0)
    units = _Units([lifetimes[k] for k in real], alignment, clock or Clock())
    placed, bound = units.packed(effort, room // alignment)
    for k, offset in zip(real, placed.tolist(), strict=True):
        offsets[k] = offset * alignment
    return Packing(tuple(offsets), units.height(placed) * alignment, bound * alignment)


def reaches(lifetimes: Sequence[Lifetime], room: int, clock: Clock, alignment: int = ALIGNMENT) -> bool:
    """Whether a quick search finds places within `room` bytes in time; `pack` then finds such places too."""
    real = [one for one in lifetimes if one.bytes and one.end > one.start]
    return not real or _Units(real, alignment, clock).reaches(room // alignment)


class _Units:
    """The lifetimes in multiples of the alignment."""

    def __init__(self, lifetimes: Sequence[Lifetime], alignment: int, clock: Clock) -> None:
        self.clock = clock
        self.start = np.array([one.start for one in lifetimes], np.int64)
        self.end = np.array([one.end for one in lifetimes], np.int64)
        self.size = np.array([-(-one.bytes // alignment) for one in lifetimes], np.int64)
        self.lives = Lives(self.start, self.end, self.size, np.zeros_like(self.size))
        self.case = sections(self.lives)

    def height(self, offsets: Ints) -> int:
        return int((offsets + self.size).max())

    def packed(self, effort: int, room: int) -> tuple[Ints, int]:
        """The best offsets found, and the height that none can be below."""
        bound = int(self.case.held.max())
        best = self._largest_first()
        if self._is_large():
            if self.height(best) > max(bound, room) and not self.clock.over():
                best = min(best, lowered(self.lives, max(bound, room), effort, self.clock), key=self.height)
            return best, bound
        tried = list(ranks(self.case, self.end - self.start))
        for turn in range(effort):
            for rank in tried if turn else self._first_round():
                if self.height(best) <= max(bound, room) or self.clock.over():
                    return best, bound
                found, proved = self._try(max(bound, room), rank, LONGER**turn)
                best = best if found is None else found
                if proved:
                    bound = max(bound, room) + 1
        return self._narrowed(best, bound, tried, 0 if room or not effort else NARROWER)

    def _narrowed(self, best: Ints, bound: int, tastes: Sequence[Ints], tries: int) -> tuple[Ints, int]:
        """Bisect the heights that the first round of the search can reach, from the bound to the best."""
        low = bound
        for _ in range(tries):
            middle = (low + self.height(best)) // 2
            if middle >= self.height(best) or self.clock.over():
                break
            each = (self._try(middle, rank, 1) for rank in tastes)
            found, proved = next((one for one in each if one[0] is not None or one[1]), (None, False))
            if found is not None:
                best = found
                continue
            bound = middle + 1 if proved else bound
            low = middle + 1
        return best, bound

    def reaches(self, room: int) -> bool:
        if self.case.held.max() > room:
            return False
        if self._is_large():
            return self.height(self.packed(1, room)[0]) <= room
        tries = (self._try(room, rank, 1)[0] is not None for rank in islice(self._first_round(), QUICK))
        return self.height(self._largest_first()) <= room or any(tries)

    def _is_large(self) -> bool:
        return len(self.size) > MANY

    def _first_round(self) -> Iterator[Ints]:
        """All tastes, and between them some by area that differ a little; each finds in one case of three what most
        others miss."""
        tastes, count = ranks(self.case, self.end - self.start), len(self.size)
        random, area = np.random.default_rng(count), (self.end - self.start) * self.size
        for _ in range(max(len(TASTES), min(SHAKEN, SHAKING // (ROUND + count**2)))):
            yield from islice(tastes, 1)
            yield ranked(np.argsort(-area * np.exp(random.normal(0, SHAKE, count))))

    def _try(self, height: int, rank: Ints, longer: int) -> tuple[Ints | None, bool]:
        """Offsets within the height, or whether it is proved that there are none."""
        count = len(self.size)
        offsets, most = np.zeros(count, np.int64), ROUND * longer + count**2
        with halting(self.clock if most > LONG else None) as halt:
            how, work = search_canonical(self.case, rank, height, most, offsets, halt)
        self.clock.spend(moves=work // ITEMS_PER_MOVE)
        return (offsets if how == FITS else None), how == NEVER

    def _largest_first(self) -> Ints:
        return self.lives.placed(np.lexsort((self.start, self.start - self.end, -self.size)))
