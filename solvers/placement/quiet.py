"""Orders that are easier to place: the same computes, moved about so that little is held away from the peak.

Where many moments are nearly as full as the peak, a block of the peak's size can seldom be filled. So the bytes held
above some level are lowered, summed over all computes, and bytes that do not fit count many times.

Invariant: a resulting order has the same computes, and is legal. The tries are counted in moves, so that without a
time-out the result depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from solvers.annealing.cooling import Kept
from solvers.clock import Clock
from solvers.orders.measure import measure
from solvers.placement.memory import MemoryModel

LEVELS = 0.9, 0.93, 0.85  # shares of the room, one for each go
# of a go; 36 goes of 50 each brought places to none of 19 orders to which three such goes do not
MOVES_PER_COMPUTE = 10


def quieter(memory: MemoryModel, order: Sequence[int], seed: int, clock: Clock) -> Iterator[tuple[int, ...]]:
    """Orders of the same computes that hold no more than the room at once, and above some lower level as little as
    possible."""
    room, begin = memory.room, np.array(memory.smaller.shrink(order), np.int64)
    for go, level in enumerate(LEVELS):
        search = memory.local(int(level * room), seed, roof=room)
        moves = MOVES_PER_COMPUTE * len(begin)
        with clock.at_work(moves):
            found = search.go(begin, go, moves, clock, Kept.REPEATS).order
        if measure(memory.arrays, found)[1] <= memory.live.resident + room:
            yield memory.smaller.expand(found.tolist())
        if clock.over():
            return
