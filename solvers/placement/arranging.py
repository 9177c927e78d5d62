"""Searches orders for an arena of a given size, or for the block of a default session's later runs, by annealing.

An arena's free memory is in pieces, so the arena itself is in the loop. A score is the cost plus a price for each byte
that finds no room; the price adapts on the way, as in `anneal`. Live bytes are known after each move without running
through the order, and they reject most moves.

Invariant: the resulting order is legal and runs in the arena, as `arena` has it, or keeps to the room, as `later` has
it. The tries are counted in moves, so that without a time-out the answer depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvers._loops import arrange, lacking
from solvers.clock import Clock
from solvers.methods.auto.layout import SLOTS, blank
from solvers.methods.auto.local import LocalSearch
from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.halting import halting
from solvers.placement.arena import Pieces, pieces_of
from solvers.placement.pattern import outputs_apart
from solvers.problem import Problem
from solvers.reductions.contraction import Contraction
from solvers.reductions.views import reduced

GOES = 24
MOVES_PER_COMPUTE = 80  # moves of a go for each compute
MOVES_PER_TRY = 20  # moves of plain annealing that take as long as one with the arena in the loop
HEATS = (1e-3, 3e-4)  # shares of the cost of everything once
PRICE = 3.0  # price of a byte that finds no room, where 1 is the cost of making an average byte
REFUSED, COST, LENGTH = range(3)


def arrange_in_arena(
    problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock, reorder_only: bool = False
) -> tuple[int, ...] | None:
    """The cheapest order met that runs in an arena of `room` bytes, from one that may not; None if none does.

    `reorder_only`: ops are only moved about, until it runs.
    """
    smaller = reduced(problem)
    local = LocalSearch(smaller.problem, problem.resident + room, seed)
    arena = Room(arrays_of(smaller.problem), pieces_of(smaller.problem), room, later=False)
    return _arrange(smaller, order, local, arena, clock, reorder_only)


def arrange_in_pattern(
    problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock, reorder_only: bool = False
) -> tuple[int, ...] | None:
    """The cheapest order met whose later runs in a default session hold no more than `room` bytes; None if none
    does."""
    smaller = reduced(problem)
    local = LocalSearch(outputs_apart(smaller.problem), problem.resident + room, seed)
    pattern = Room(arrays_of(smaller.problem), pieces_of(smaller.problem), room, later=True)
    return _arrange(smaller, order, local, pattern, clock, reorder_only)


def _arrange(
    smaller: Contraction, order: Sequence[int], local: LocalSearch, room: Room, clock: Clock, reorder_only: bool
) -> tuple[int, ...] | None:
    begin = np.array(smaller.shrink(order), np.int64)
    best = Arrangement(begin, lacking(room, begin), int(room.arrays.cost[begin].sum()))
    least_cost = int(room.arrays.cost.sum())  # the cost of everything once
    for go in range(GOES):
        if clock.over() or (not best.refused and (reorder_only or best.cost <= least_cost)):
            break
        best = _go(local, room, best, go, clock, reorder_only)
    return None if best.refused else smaller.expand(best.order.tolist())


class Room(NamedTuple):
    """The memory in which an order's requests must find room: an arena, or with `later` the block of a default
    session's later runs."""

    arrays: Arrays
    pieces: Pieces
    bytes: int
    later: bool


class Arrangement(NamedTuple):
    """`refused`: the bytes of the order's requests that find no room."""

    order: Ints
    refused: int
    cost: int


def _go(
    local: LocalSearch, room: Room, begin: Arrangement, number: int, clock: Clock, reorder_only: bool
) -> Arrangement:
    """One go from that order: the cheapest order that runs, otherwise the one with the fewest bytes refused."""
    length = len(begin.order) + 1
    state = blank(local.tables, 2 * length, local.room)
    local.load(state, begin.order, exactly=True)
    found, facts = np.zeros(int(state[SLOTS]), np.int64), np.array([begin.refused, begin.cost, 0], np.int64)
    cooling = local.cool(number, MOVES_PER_COMPUTE * length, HEATS[number % len(HEATS)], PRICE)
    with halting(clock) as halt:
        arrange(local.tables, state, room, found, facts, cooling, reorder_only, halt)
    clock.spend(moves=MOVES_PER_TRY * MOVES_PER_COMPUTE * length)
    if not facts[LENGTH]:
        return begin
    return Arrangement(found[: facts[LENGTH]].copy(), int(facts[REFUSED]), int(facts[COST]))
