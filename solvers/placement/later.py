"""The block of `pattern`, compiled: what of an order's requests lies above the room that later runs have.

Invariant: nothing lies above it exactly where `pattern.held_later` of the order's plan is within the room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.compiled import entry, inner
from solvers.orders.measure import blocks_of
from solvers.placement.region import ALIGNMENT
from solvers.problem import Problem

ILLEGAL = -1


def above_of(problem: Problem, order: Sequence[int], room: int) -> int:
    """The bytes by which requests lie above the room, summed; ILLEGAL for such an order."""
    return int(above(arrays_of(problem), np.asarray(order, np.int64), room))


@entry
def above(arrays: Arrays, order: Ints, room: int) -> int:
    """What stays to the end are outputs, which are asked for apart, as what kernels work in is."""
    first, held, last = blocks_of(arrays, order)
    if len(first) == 0:
        return ILLEGAL
    inside = room - _beside(arrays, order, first, held, last)
    begins, ends = np.zeros(len(held) + 1, np.int64), np.zeros(len(held) + 1, np.int64)  # live blocks by address
    many, over = 0, 0
    address = np.full(len(held), -1, np.int64)
    dying = np.full(len(order) + 1, -1, np.int64)  # step -> a block that is let go then -> the next of them
    after = np.full(len(held), -1, np.int64)
    for step in range(len(order)):
        for block in range(first[step], first[step + 1]):
            if held[block] == 0 or last[block] == len(order):
                continue
            size = -(-held[block] // ALIGNMENT) * ALIGNMENT
            address[block] = _put(begins, ends, many, size)
            many += 1
            over += max(0, address[block] + size - inside)
            after[block] = dying[last[block]]
            dying[last[block]] = block
        block = dying[step]
        while block >= 0:
            many = _drop(begins, ends, many, address[block])
            block = after[block]
    return over if inside >= 0 or over else -inside


@inner
def _beside(arrays: Arrays, order: Ints, first: Ints, held: Ints, last: Ints) -> int:
    """The most that outputs and what kernels work in take at once."""
    outputs = most = 0
    for step in range(len(order)):
        for block in range(first[step], first[step + 1]):
            if last[block] == len(order):
                outputs += held[block]
        most = max(most, outputs + arrays.workspace[order[step]])
    return most


@inner
def _put(begins: Ints, ends: Ints, many: int, size: int) -> int:
    """Where a block goes: in the smallest gap, or above all."""
    place, address, least, reached = many, 0, -1, 0
    if many:
        address = ends[many - 1]
    for k in range(many):
        over = begins[k] - reached - size
        if over >= 0 and (least < 0 or over < least):
            place, address, least = k, reached, over
            if over == 0:
                break
        reached = ends[k]
    for k in range(many, place, -1):
        begins[k], ends[k] = begins[k - 1], ends[k - 1]
    begins[place], ends[place] = address, address + size
    return int(address)


@inner
def _drop(begins: Ints, ends: Ints, many: int, address: int) -> int:
    low, high = 0, many
    while low < high:
        middle = (low + high) // 2
        if begins[middle] < address:
            low = middle + 1
        else:
            high = middle
    for k in range(low, many - 1):
        begins[k], ends[k] = begins[k + 1], ends[k + 1]
    return many - 1
