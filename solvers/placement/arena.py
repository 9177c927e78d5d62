"""The arena of `region`, compiled: what of an order's requests finds no room in it.

Invariant: nothing is refused exactly where `region.stuck_at` is None for the plan of the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvers.orders.arrays import Arrays, Ints, arrays_of, rows
from solvers.orders.compiled import entry, inner
from solvers.orders.measure import blocks_of
from solvers.placement.region import ALIGNMENT, rounded
from solvers.problem import Problem

ILLEGAL = -1


class Pieces(NamedTuple):
    """What a node works in, in whole units of the arena; row i of `bytes` is of node i."""

    at: Ints
    bytes: Ints
    early: Ints  # how many of them come before its results


def pieces_of(problem: Problem) -> Pieces:
    work = [node.early or ((node.workspace,) if node.workspace else ()) for node in problem.nodes]
    at, sizes = rows([tuple(map(rounded, one)) for one in work])
    return Pieces(at, sizes, np.array([len(node.early) for node in problem.nodes], np.int64))


def refused_of(problem: Problem, order: Sequence[int], room: int) -> int:
    """The bytes by which requests find no chunk large enough in an arena of `room` bytes; ILLEGAL for such an order."""
    return int(refused(arrays_of(problem), pieces_of(problem), np.asarray(order, np.int64), room))


@entry
def refused(arrays: Arrays, pieces: Pieces, order: Ints, room: int) -> int:
    """The bytes that the largest chunk is short of requests, summed; such are had elsewhere, and the run goes on."""
    first, held, last = blocks_of(arrays, order)
    if len(first) == 0:
        return ILLEGAL
    missing = 0
    free = np.zeros((2, len(held) + len(pieces.bytes) + 2), np.int64)  # chunks by address: where they begin, and end
    free[1, 0] = room // ALIGNMENT * ALIGNMENT
    many = 1
    address = np.full(len(held), -1, np.int64)
    dying = np.full(len(order) + 1, -1, np.int64)  # step -> a block that is let go then -> the next of them
    after = np.full(len(held), -1, np.int64)
    scratch = np.zeros(len(pieces.bytes) + 1, np.int64)
    for step in range(len(order)):
        node = order[step]
        begin, end = pieces.at[node], pieces.at[node + 1]
        middle = begin + pieces.early[node]
        for k in range(begin, middle):
            scratch[k - begin], many = _take(free, many, pieces.bytes[k])
        for block in range(first[step], first[step + 1]):
            if held[block] == 0:
                continue
            size = -(-held[block] // ALIGNMENT) * ALIGNMENT
            address[block], many = _take(free, many, size)
            if address[block] < 0:
                missing -= address[block]
                continue
            after[block] = dying[last[block]]
            dying[last[block]] = block
        for k in range(middle, end):
            scratch[k - begin], many = _take(free, many, pieces.bytes[k])
        for k in range(begin, end):
            if scratch[k - begin] < 0:
                missing -= scratch[k - begin]
            else:
                many = _give(free, many, scratch[k - begin], pieces.bytes[k])
        block = dying[step]
        while block >= 0:
            many = _give(free, many, address[block], -(-held[block] // ALIGNMENT) * ALIGNMENT)
            block = after[block]
    return missing


@inner
def _take(free: Ints, many: int, size: int) -> tuple[int, int]:
    """The address of the smallest chunk that holds `size`, or, less than 0, what the largest lacks of it; and how many
    chunks there are then."""
    if size == 0:
        return 0, many
    best, least, largest = -1, 1 << 62, 0
    for k in range(many):
        found = free[1, k] - free[0, k]
        largest = max(largest, found)
        if size <= found < least:
            best, least = k, found
    if best < 0:
        return largest - size, many
    address = free[0, best]
    free[0, best] += size
    if least == size:
        many -= 1
        for k in range(best, many):
            free[0, k], free[1, k] = free[0, k + 1], free[1, k + 1]
    return address, many


@inner
def _give(free: Ints, many: int, address: int, size: int) -> int:
    """Put a chunk back and join it with its neighbours; how many chunks there are then."""
    if size == 0:
        return many
    low, high = 0, many
    while low < high:
        middle = (low + high) // 2
        if free[0, middle] < address:
            low = middle + 1
        else:
            high = middle
    joins = low > 0 and free[1, low - 1] == address
    if low < many and free[0, low] == address + size:
        if not joins:
            free[0, low] = address
            return many
        free[1, low - 1] = free[1, low]
        for k in range(low, many - 1):
            free[0, k], free[1, k] = free[0, k + 1], free[1, k + 1]
        return many - 1
    if joins:
        free[1, low - 1] += size
        return many
    for k in range(many, low, -1):
        free[0, k], free[1, k] = free[0, k - 1], free[1, k - 1]
    free[0, low], free[1, low] = address, address + size
    return many + 1
