"""Orders that are easier to place: the same computes, moved about so that little is held away from the peak.

Where many moments are nearly as full as the peak, a block of the peak's size can seldom be filled. So the bytes held
above some level are lowered, summed over all computes, and bytes that do not fit count many times.

Invariant: a resulting order has the same computes, and is legal. The tries are counted in moves, so that without a
time-out the result depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.clock import Clock
from solvers.orders.arrays import arrays_of
from solvers.orders.measure import measure
from solvers.problem import Problem
from solvers.reductions.views import reduced
from solvers.updates import following_readers

LEVELS = (0.9, 0.93, 0.85, 0.95, 0.8, 0.97)  # shares of the room


class Pace(NamedTuple):
    """How many goes, and how many moves of each for every compute."""

    goes: int
    moves: int


PATIENT = Pace(36, 50)
BRISK = Pace(3, 10)  # for thousands of computes, where hundreds of thousands of moves are enough


def quieter(
    problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock, pace: Pace = PATIENT
) -> Iterator[tuple[int, ...]]:
    """Orders of the same computes that hold no more than `room` bytes at once, and above some lower level as little as
    possible."""
    smaller, budget = reduced(problem), problem.resident + room
    arrays, begin = arrays_of(smaller.problem), np.array(smaller.shrink(order), np.int64)
    below: list[LocalSearch] = []
    for go in range(pace.goes):
        if go < len(LEVELS):
            below.append(
                LocalSearch(following_readers(smaller.problem), problem.resident + int(LEVELS[go] * room), seed, budget)
            )
        search = below[go % len(LEVELS)]
        found = search.go(begin, go, pace.moves * len(begin), clock, Kept.REPEATS).order
        if measure(arrays, found)[1] <= budget:
            yield smaller.expand(found.tolist())
        if clock.over():
            return
