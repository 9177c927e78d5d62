"""Thousands of lifetimes in a lower and lower block.

Nearly all of the memory is that of few lifetimes: the small ones have a pool of their own (`pool.py`). The large ones
are placed from the bottom up (`canonical.py`): in an order that moves little about at the peak, that seldom has to go
back, and fills the block to the last byte. Where it has to, they are moved about (`ejecting.hpp`), to one height after
the other: from places in the order of their starts, which serves regular graphs, and of their sizes.

Invariant: no two lifetimes meet in time and in address, and a block is never higher than the one before. The work is
counted, so that without a time-out the answer is always the same.
"""

from __future__ import annotations

import numpy as np

from solvers._loops import place_by_ejection
from solvers.clock import Clock
from solvers.orders.halting import halting
from solvers.placement.canonical import FITS, search, sections
from solvers.placement.lives import Ints, Lives
from solvers.placement.pool import pool_of
from solvers.placement.tastes import TASTES_AT_SIZE, ranks

STEP = 0.03  # of the height above the goal, by which the next height is lower
WORK = 140_000_000  # lifetimes looked at, for each unit of effort
LOOKS_PER_MOVE = 100  # looks at a lifetime that take as long as a move of local search
# What it is worth not to take out a lifetime of so much size and length: it is the short ones that move about.
SIZE_POWER, LENGTH_POWER = 1.0, 0.75

# From the bottom up a look takes longer. Placing all without going back takes half a look for each pair.
TASTED = 80_000_000  # looks for each unit of effort, whatever the taste
TRIED = 0.6  # looks for each pair, with one taste
TASTED_PER_MOVE = 30


def lowered(lives: Lives, goal: int, effort: int, clock: Clock) -> Ints:
    """Offsets, at best below the goal: the height that no block need be below."""
    pool = pool_of(lives, goal)
    large, height = pool.beside(), max(goal, int(pool.filled().max()))
    placed = _from_bottom_up(large, height, TASTED * effort, clock)
    if placed is None:
        orders = np.lexsort((-large.size, large.start)), np.lexsort((large.start, -large.size))
        begun = [large.placed(order) for order in orders]
        found = [_lower(large, offsets, goal, WORK // len(begun) * effort, clock) for offsets in begun]
        placed = min(found, key=large.height)
    return pool.joined(placed)


def _from_bottom_up(lives: Lives, height: int, work: int, clock: Clock) -> Ints | None:
    """Places within the height, if a taste finds them all but at once."""
    case = sections(lives)
    offsets, most = np.zeros(len(lives.size), np.int64), int(TRIED * len(lives.size) ** 2)
    for rank in ranks(case, lives.end - lives.start, TASTES_AT_SIZE):
        if work <= 0 or clock.over():
            break
        with halting(clock) as halt:
            how, used = search(case, rank, height, most, offsets, halt)
        work -= used
        clock.spend(moves=used // TASTED_PER_MOVE)
        if how == FITS:
            return offsets
    return None


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
