"""Lifetimes in a lower and lower block.

They are placed greedily: the largest first, in the order of their starts, which serves regular graphs, and from the
bottom up (`skyline.hpp`) with one taste after the other. From the lowest of these on, what is too high is moved about
(`ejecting.hpp`), to one height after the other.

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
from solvers.placement.tastes import ranks

LOOKS_PER_MOVE = 10  # looks at a lifetime in the queue that take as long as a move of local search
GLANCES_PER_MOVE = 100  # lifetimes looked at by ejection that take as long as a move of local search
STEP = 0.03  # of the height above the goal, by which the next height is lower
LOT = 6_000_000  # lifetimes looked at before the weights are forgotten, where no lower height was reached meanwhile


def lowered(lives: Lives, goal: int, effort: int, clock: Clock) -> Ints:
    """Offsets, at best below the goal: the height that no block need be below. `effort`: lots of ejection."""
    best: Ints | None = None
    for found in _greedily(lives, clock):
        best = found if best is None else min(best, found, key=lives.height)
        if lives.height(best) <= goal or clock.over():
            break
    assert best is not None
    return _ejected(lives, best, goal, LOT * effort, clock)


def _greedily(lives: Lives, clock: Clock) -> Iterator[Ints]:
    yield lives.largest_first()
    yield lives.placed(np.lexsort((-lives.size, lives.start)))
    case = sections(lives)
    for rank in ranks(case, lives.end - lives.start):
        offsets = np.zeros_like(lives.size)
        clock.spend(moves=place_from_bottom(case, rank, offsets) // LOOKS_PER_MOVE)
        yield offsets


def _ejected(lives: Lives, offsets: Ints, goal: int, work: int, clock: Clock) -> Ints:
    """The same or better places. What it is worth not to take a lifetime out grows with its area: it is the small and
    short ones that move about."""
    area = lives.size * (lives.end - lives.start)
    more = np.sqrt(area / area.max())
    weight, seed, lot = more.copy(), 0, LOT
    while (height := lives.height(offsets)) > goal and work > 0 and not clock.over():
        tried, seed = offsets.copy(), seed + 1
        wanted = max(goal, int(height - max(1, (height - goal) * STEP)))
        with halting(clock) as halt:
            left, used = place_by_ejection(lives, weight, more, wanted, tried, seed, min(work, lot), halt)
        clock.spend(moves=used // GLANCES_PER_MOVE)
        work -= used
        lot -= used
        if not left:
            offsets, lot = tried, LOT
        elif lot <= 0:
            weight, lot = more.copy(), LOT
    return offsets
