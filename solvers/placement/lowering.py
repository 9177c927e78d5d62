"""Thousands of lifetimes in a lower and lower block.

Nearly all of the memory is that of few lifetimes: the small ones have a pool of their own (`pool.py`). The large ones
are moved about (`ejecting.hpp`), to one height after the other.

Invariant: no two lifetimes meet in time and in address, and a block is never higher than the one before. The work is
counted, so that without a time-out the answer is always the same.
"""

from __future__ import annotations

import numpy as np

from solvers._loops import place_by_ejection
from solvers.clock import Clock
from solvers.orders.halting import halting
from solvers.placement.lives import Ints, Lives
from solvers.placement.pool import pool_of

STEP = 0.03  # of the height above the goal, by which the next height is lower
WORK = 140_000_000  # lifetimes looked at, for each unit of effort
LOOKS_PER_MOVE = 100  # looks at a lifetime that take as long as a move of local search
# What it is worth not to take out a lifetime of so much size and length: it is the short ones that move about.
SIZE_POWER, LENGTH_POWER = 1.0, 0.75


def lowered(lives: Lives, goal: int, effort: int, clock: Clock) -> Ints:
    """Offsets, at best below the goal: the height that no block need be below."""
    pool = pool_of(lives, goal)
    large = pool.beside()
    begun = large.placed(np.lexsort((large.start, -large.size)))
    return pool.joined(_lower(large, begun, goal, WORK * effort, clock))


def _lower(lives: Lives, offsets: Ints, goal: int, work: int, clock: Clock) -> Ints:
    """The same or better places."""
    length = lives.end - lives.start
    more = (lives.size / lives.size.max()) ** SIZE_POWER * (length / length.max()) ** LENGTH_POWER
    weight, seed = more.copy(), 0
    while (height := lives.height(offsets)) > goal and work > 0 and not clock.over():
        tried, seed = offsets.copy(), seed + 1
        wanted = max(goal, int(height - max(1, (height - goal) * STEP)))
        with halting(clock) as halt:
            left, used = place_by_ejection(lives, weight, more, wanted, tried, seed, work, halt)
        work -= used
        clock.spend(moves=used // LOOKS_PER_MOVE)
        if not left:
            offsets = tried
    return offsets
