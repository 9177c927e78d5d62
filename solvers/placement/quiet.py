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
from solvers.annealing.local import LocalSearch
from solvers.clock import Clock
from solvers.orders.arrays import arrays_of
from solvers.orders.measure import measure
from solvers.problem import Problem
from solvers.reductions.views import reduced
from solvers.updates import following_readers

LEVELS = 0.9, 0.93, 0.85  # shares of the room, one for each go
# of a go; 36 goes of 50 each brought places to none of 19 orders to which three such goes do not
MOVES_PER_COMPUTE = 10


def quieter(problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> Iterator[tuple[int, ...]]:
    """Orders of the same computes that hold no more than `room` bytes at once, and above some lower level as little as
    possible."""
    smaller, budget = reduced(problem), problem.resident + room
    arrays, begin = arrays_of(smaller.problem), np.array(smaller.shrink(order), np.int64)
    for go, level in enumerate(LEVELS):
        below = problem.resident + int(level * room)
        search = LocalSearch(following_readers(smaller.problem), below, seed, budget)
        found = search.go(begin, go, MOVES_PER_COMPUTE * len(begin), clock, Kept.REPEATS).order
        clock.spend(MOVES_PER_COMPUTE * len(begin))
        if measure(arrays, found)[1] <= budget:
            yield smaller.expand(found.tolist())
        if clock.over():
            return
