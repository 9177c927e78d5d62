"""Orders that can be placed: made from one that nearly can, by the search's own moves.

The search moves ops about where that costs nothing, which leaves lifetimes in disorder. So ops are first moved about
again, briefly, so that little is held away from the peak (`quiet.py`): most plans then have places in what is live at
once, and are packed in a fraction of the time that the search's own order takes. Where a block is still higher, the
order is made to hold half of that less, from where it is, and placed again: where it holds less already nothing need
change. That goes on between the most that could be placed and the least that could not, and then for a cheaper order
there.

Where a block is laid out as requests come, orders are also tried with each op back beside what reads it (`tidy.py`).

Invariant: what comes out is legal and has its places within the room; how much is tried is counted in moves, so that
without a time-out it depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from solvers.clock import Clock
from solvers.orders.arrays import Ints
from solvers.orders.measure import measure
from solvers.placement.memory import MemoryModel
from solvers.placement.packing import SURE
from solvers.placement.quiet import quieter
from solvers.placement.tidy import tidied

Order = tuple[int, ...]

GOES = 16  # of the search
VAIN = 4  # goes in a row after which it ends, if an order is placed and none of them led to a cheaper one
COOL = 2  # of its goes the cooler half: the order is to stay nearly as it is
MOVES = 100_000  # of a go
NEARLY = 0.01  # of the room: where a block is too high by no more, half of that less may be enough
CLOSE = 0.001  # of the room, between what could be placed and what could not: nothing between is tried


def narrowed(memory: MemoryModel, order: Sequence[int], seed: int, clock: Clock) -> Generator[bool, None, Order | None]:
    """The cheapest order met that fits; None if there was none."""
    return _Narrowing(memory, seed, clock).run(order)


class _Narrowing:
    def __init__(self, memory: MemoryModel, seed: int, clock: Clock) -> None:
        self.memory, self.room = memory, memory.room
        self.seed, self.clock = seed, clock
        self.placed: tuple[int, Order] | None = None  # the cheapest, with its cost
        self.low, self.high = 0, self.room  # live bytes of what could be placed, and of what could not

    def run(self, order: Sequence[int]) -> Generator[bool, None, Order | None]:
        height, settled = self._settle(tuple(order))
        if height <= self.room:
            return settled
        found = np.array(self.memory.smaller.shrink(settled), np.int64)
        live = self.room - self._excess(height)
        vain = 0
        for number in range(GOES):
            if self.clock.over() or live <= 0 or vain == VAIN:
                break
            yield self.placed is not None
            found, fits = self._go(found, live, COOL * number)
            if not fits:
                continue
            before, height = self.placed, self._try(found)
            vain = vain + 1 if before and before is self.placed else 0
            self.low, self.high = (live, self.high) if height <= self.room else (self.low, live)
            if not self.low:
                live -= self._excess(height)
            elif self.high - self.low > CLOSE * self.room:
                live = (self.low + self.high) // 2
            else:
                live = self.low
        return None if self.placed is None else self.placed[1]

    def _excess(self, height: int) -> int:
        """How much less an order is to hold, whose block is so high: half of what that is too high, and a little; all
        of it where that is much, since time is short then."""
        over = height - self.room
        return (over if over > NEARLY * self.room else over // 2) + int(CLOSE * self.room)

    def _go(self, order: Ints, live: int, number: int) -> tuple[Ints, bool]:
        """The cheapest order near by that holds no more than so many bytes at once; whether there is one."""
        with self.clock.at_work(MOVES):
            found = self.memory.local(live, self.seed).go(order, number, MOVES, self.clock).order
        return found, measure(self.memory.arrays, found)[1] <= self.memory.live.resident + live

    def _try(self, order: Ints) -> int:
        """The height of the block, noting the order if it is cheaper than what could be placed before."""
        cost, _ = measure(self.memory.arrays, order)
        height, settled = self._settle(self.memory.smaller.expand(order.tolist()))
        if height <= self.room and (self.placed is None or cost < self.placed[0]):
            self.placed = cost, settled
        return height

    def _settle(self, order: Order) -> tuple[int, Order]:
        """The order whose block is lowest, of this one and of some with its ops moved about; the first that fits.

        Packing takes most of the time: where none fits at once, only the one that comes nearest is packed.
        """
        at_once = self.clock.within(0)  # to pack a search's own order takes several times as long as quieter ones
        best = self.memory.height(order, at_once), order
        if self.memory.as_they_come:
            neat = tidied(self.memory.live, order)
            best = min(best, (self.memory.height(neat, self.clock), neat), key=lambda one: one[0])
        if best[0] <= self.room:
            return best
        for other in quieter(self.memory, order, self.seed, self.clock):
            best = min(best, (self.memory.height(other, self.clock), other), key=lambda one: one[0])
            if best[0] <= self.room:
                return best
        return self.memory.height(best[1], self.clock, effort=SURE), best[1]
