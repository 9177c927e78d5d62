"""Thousands of lifetimes in a lower and lower block.

Nearly all of the memory is that of few lifetimes: the small ones have a pool of their own (`pool.py`). The large ones
are placed from the bottom up (`skyline.hpp`), with one taste after the other. That takes hundredths of a second, and
moves little about at the peak. What is too high is moved about (`ejecting.hpp`), to one height after the other: from
the best places so far, and from places in the order of starts, which serves regular graphs.

Invariant: no two lifetimes meet in time and in address, and a block is never higher than the one before. The work is
counted, so that without a time-out the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers._loops import place_by_ejection, place_from_bottom
from solvers.clock import Clock
from solvers.orders.halting import halting
from solvers.placement.canonical import sections
from solvers.placement.lives import Ints, Lives
from solvers.placement.pool import pool_of
from solvers.placement.tastes import TASTES_AT_SIZE, ranks

LOOKS_PER_MOVE = 10  # looks at a lifetime in the queue that take as long as a move of local search

STEP = 0.03  # of the height above the goal, by which the next height is lower
WORK = 70_000_000  # lifetimes looked at, for each unit of effort
GLANCES_PER_MOVE = 100  # such looks that take as long as a move of local search
# What it is worth not to take out a lifetime of so much size and length: it is the short ones that move about.
SIZE_POWER, LENGTH_POWER = 1.0, 0.75


def lowered(lives: Lives, goal: int, effort: int, clock: Clock) -> Ints:
    """Offsets, at best below the goal: the height that no block need be below. `effort`: without any, only tastes are
    tried."""
    pool = pool_of(lives, goal)
    large, height = pool.beside(), max(goal, int(pool.filled().max()))
    best: Ints | None = None
    for found in _from_bottom_up(large, clock):
        best = found if best is None else min(best, found, key=large.height)
        if large.height(best) <= height or clock.over():
            break
    assert best is not None
    begun = (best, large.placed(np.lexsort((-large.size, large.start)))) if effort else ()
    for offsets in begun:
        if large.height(best) > height:
            best = min(best, _lower(large, offsets, height, WORK // len(begun) * effort, clock), key=large.height)
    return pool.joined(best)


def _from_bottom_up(lives: Lives, clock: Clock) -> Iterator[Ints]:
    """Places by each taste."""
    case = sections(lives)
    for rank in ranks(case, lives.end - lives.start, TASTES_AT_SIZE):
        offsets = np.zeros_like(lives.size)
        clock.spend(moves=place_from_bottom(case, rank, offsets) // LOOKS_PER_MOVE)
        yield offsets


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
        clock.spend(moves=used // GLANCES_PER_MOVE)
        if not left:
            offsets = tried
    return offsets
