"""Orders for an arena of a given size, whose free memory is in pieces: annealing with the arena itself in the loop; or
with the block that later runs of a default session are laid out in.

What counts is the cost, and so much for each byte that finds no room; how much is learnt on the way, as in `anneal`.
What is live is known after each move without running through the order, so that most moves are turned down by that.

Invariant: what comes out is legal and runs in the arena, as `arena` has it, or keeps to the room, as `later` has it;
how much is tried is counted in moves, so that without a time-out the answer depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvers._loops import arrange, fill_state, lacking
from solvers.clock import Clock
from solvers.methods.auto.layout import BUDGET, HELD, SLOTS, blank
from solvers.methods.auto.local import LocalSearch
from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.halting import halting
from solvers.orders.measure import measure
from solvers.placement.arena import Pieces, pieces_of
from solvers.placement.pattern import outputs_apart
from solvers.problem import Problem
from solvers.reductions.views import reduced

GOES = 24
MOVES = 80  # of a go, for each compute
DEAR = 20  # moves of plain annealing that take as long as one with the arena in the loop
HEATS = (1e-3, 3e-4)  # of the cost of everything once
PRICE = 3.0  # of a byte that finds no room, where 1 is what an average byte costs to make
DEAREST = 10_000  # times the price to begin with
SEEDS = 1_000_003
REFUSED, COST, LENGTH = range(3)


def arranged(
    problem: Problem,
    order: Sequence[int],
    room: int,
    seed: int,
    clock: Clock,
    once: bool = False,
    later: bool = False,
) -> tuple[int, ...] | None:
    """The cheapest order met that runs in `room` bytes, from one that may not; None if none does.

    `once`: ops are only moved about, until it runs. `later`: in those that later runs of a default session hold.
    """
    smaller = reduced(problem)
    counted = outputs_apart(smaller.problem) if later else smaller.problem
    local = LocalSearch(counted, problem.resident + room, seed)
    case = Room(arrays_of(smaller.problem), pieces_of(smaller.problem), room, later)
    begin = np.array(smaller.shrink(order), np.int64)
    best = Arrangement(begin, lacking(case, begin), int(case.arrays.cost[begin].sum()))
    least = int(case.arrays.cost.sum())  # of everything once
    for go in range(GOES):
        if clock.over() or (not best.refused and (once or best.cost <= least)):
            break
        best = _go(local, case, best, go, clock, once)
    return None if best.refused else smaller.expand(best.order.tolist())


class Room(NamedTuple):
    """What is placed in how much room; `later`: by the pattern of a default session, else by an arena."""

    arrays: Arrays
    pieces: Pieces
    room: int
    later: bool


class Arrangement(NamedTuple):
    order: Ints
    refused: int
    cost: int


def _go(local: LocalSearch, case: Room, begin: Arrangement, number: int, clock: Clock, once: bool) -> Arrangement:
    """One go from there; the cheapest of those that run, else the one with the fewest bytes refused."""
    ended = np.append(begin.order, local.nodes - 1)
    tables, state = local.tables, blank(local.tables, 2 * len(ended), local.room)
    fill_state(tables, state, ended)
    counted = int(state[state[HELD] : state[HELD] + state[SLOTS]].max())
    hidden = counted - (measure(local.arrays, ended)[1] - local.resident)  # what the state counts too much
    state[BUDGET] = local.room + hidden
    fill_state(tables, state, ended)
    found, facts = np.zeros(int(state[SLOTS]), np.int64), np.array([begin.refused, begin.cost, 0], np.int64)
    heat, price = HEATS[number % len(HEATS)] * local.total, PRICE * local.price
    begins = (local.seed * 10_000 + number) * SEEDS % (1 << 32)
    with halting(clock) as halt:
        how = (MOVES * len(ended), heat, begins, price, DEAREST * price, once)
        arrange(tables, state, case, found, facts, *how, halt)
    clock.spend(moves=DEAR * MOVES * len(ended))
    if not facts[LENGTH]:
        return begin
    return Arrangement(found[: facts[LENGTH]].copy(), int(facts[REFUSED]), int(facts[COST]))
