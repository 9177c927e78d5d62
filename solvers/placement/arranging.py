"""Searches orders for the block of a default session's later runs, by annealing.

That block has gaps, so it is laid out anew in the loop. A score is the cost plus a price for each byte above the room;
the price adapts on the way, as in `anneal`. Live bytes are known after each move without running through the order, and
they reject most moves.

Invariant: the resulting order is legal and keeps to the room, as `later` has it. The tries are counted in moves, so
that without a time-out the answer depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from solvers._loops import above, arrange
from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.clock import Clock
from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.halting import halting
from solvers.placement.pattern import outputs_apart
from solvers.problem import Problem
from solvers.reductions.views import reduced

GOES = 24
MOVES_PER_COMPUTE = 80  # moves of a go for each compute
MOVES_PER_TRY = 20  # moves of plain annealing that take as long as one with the block in the loop
COOL = 2  # of the usual goes every other one, the cooler half


def arrange_in_pattern(
    problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock, kept: Kept = Kept.NOTHING
) -> Generator[bool, None, tuple[int, ...] | None]:
    """The cheapest order met whose later runs in a default session hold no more than `room` bytes, from one that may
    hold more; None if none does.

    `Kept.REPEATS`: ops are only moved about, until it fits.
    """
    smaller = reduced(problem)
    arrays = arrays_of(smaller.problem)
    local = LocalSearch(outputs_apart(smaller.problem), problem.resident + room, seed)
    block = BlockSearch(local, arrays, room, clock, kept)
    begin = np.array(smaller.shrink(order), np.int64)
    best = Arrangement(begin, above(arrays, begin, room), int(arrays.cost[begin].sum()))
    least_cost = int(arrays.cost.sum())  # the cost of everything once
    for number in range(GOES):
        if clock.over() or (not best.over and (kept is Kept.REPEATS or best.cost <= least_cost)):
            break
        yield not best.over
        best = block.go(best, number)
    return None if best.over else smaller.expand(best.order.tolist())


class Arrangement(NamedTuple):
    """`over`: the bytes by which the order's requests lie above the room."""

    order: Ints
    over: int
    cost: int


class BlockSearch(NamedTuple):
    """The search of orders for a block of `room` bytes."""

    local: LocalSearch
    arrays: Arrays
    room: int
    clock: Clock
    kept: Kept

    def go(self, begin: Arrangement, number: int) -> Arrangement:
        """One go from that order: the cheapest order that fits, otherwise the one with the fewest bytes above the
        room."""
        local, length = self.local, len(begin.order) + 1
        ended = local.ended(begin.order)
        cooling = local.usual(COOL * number, MOVES_PER_COMPUTE * length)
        with halting(self.clock) as halt, self.clock.at_work(MOVES_PER_TRY * MOVES_PER_COMPUTE * length):
            order, over, cost = arrange(
                local.arrays,
                ended,
                local.room,
                local.roof,
                local.peak(ended),
                self.arrays,
                self.room,
                begin.over,
                begin.cost,
                cooling,
                self.kept,
                halt,
            )
        return Arrangement(order, over, cost) if len(order) else begin
