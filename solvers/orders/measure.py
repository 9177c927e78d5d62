"""What an order costs and needs, compiled: `lower` and `simulate` at a hundred thousand computes in some milliseconds.

Invariant: equal to lower + simulate on every legal order (held by test); an illegal order has the peak ILLEGAL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from solvers.orders.arrays import NO_VIEW, Arrays, Ints
from solvers.orders.compiled import entry, inner

ILLEGAL = -1


def measure(arrays: Arrays, order: Ints | Sequence[int]) -> tuple[int, int]:
    """(cost, peak) of an order."""
    steps = np.asarray(order, dtype=np.int64)
    memory = memory_of(arrays, steps)
    peak = int(memory.max(initial=arrays.resident))
    return int(arrays.cost[steps].sum()), ILLEGAL if len(memory) != len(steps) else peak


@inner
def touched(arrays: Arrays, order: Ints) -> Ints:
    """Where each step's reads, then writes, lie in the flags of `ends_of`."""
    at = np.zeros(len(order) + 1, np.int64)
    for step in range(len(order)):
        node = order[step]
        at[step + 1] = (
            at[step]
            + arrays.reads_at[node + 1]
            - arrays.reads_at[node]
            + arrays.writes_at[node + 1]
            - arrays.writes_at[node]
        )
    return at


@inner
def ends_of(arrays: Arrays, order: Ints, at: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_], bool]:
    """Which copies end at each step, which writes are an output's last copy, and whether the order is legal."""
    needed = arrays.output.copy()
    unfinished = arrays.output.copy()
    ends = np.zeros(at[-1], np.bool_)
    final = np.zeros(at[-1], np.bool_)
    ran = np.zeros(len(arrays.cost), np.int64)
    for step in range(len(order) - 1, -1, -1):
        node = order[step]
        ran[node] += 1
        place = at[step]
        for k in range(arrays.reads_at[node], arrays.reads_at[node + 1]):
            ends[place] = not needed[arrays.reads[k]]
            place += 1
        for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
            value = arrays.writes[k]
            ends[place] = not needed[value]
            final[place] = unfinished[value]
            unfinished[value] = False
            needed[value] = False
            place += 1
        for k in range(arrays.reads_at[node], arrays.reads_at[node + 1]):
            needed[arrays.reads[k]] = True
    legal = not needed.any()
    for node in range(len(arrays.cost)):
        if ran[node] == 0 or (ran[node] > 1 and arrays.once[node]):
            legal = False
    return ends, final, legal


@entry
def memory_of(arrays: Arrays, order: Ints) -> Ints:
    """Bytes in use during each compute; empty if the order is illegal."""
    first, held, last = blocks_of(arrays, order)
    memory = np.zeros(max(0, len(first) - 1), np.int64)
    freed = np.zeros(len(order) + 1, np.int64)
    used = arrays.resident
    for step in range(len(memory)):
        for block in range(first[step], first[step + 1]):
            used += held[block]
            freed[last[block]] += held[block]
        memory[step] = used + arrays.workspace[order[step]]
        used -= freed[step]
    return memory


@inner
def blocks_of(arrays: Arrays, order: Ints) -> tuple[Ints, Ints, Ints]:
    """The blocks of memory that are taken, one after the other: each step's first, their bytes, and the step after
    which each is let go, or the number of steps. All are empty if the order is illegal."""
    at = touched(arrays, order)
    ends, final, legal = ends_of(arrays, order, at)
    if not legal:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    firsts = np.zeros(len(order) + 1, np.int64)
    block = np.full(len(arrays.size), -1, np.int64)  # value -> the block of its live copy
    held = np.zeros(at[-1] + 1, np.int64)  # block -> its bytes
    last = np.full(at[-1] + 1, len(order), np.int64)
    holders = np.zeros(at[-1] + 1, np.int64)
    blocks = 0
    for step in range(len(order)):
        node = order[step]
        first, end = arrays.reads_at[node], arrays.reads_at[node + 1]
        wrote = at[step] + end - first
        fresh = np.full(arrays.writes_at[node + 1] - arrays.writes_at[node], -1, np.int64)
        lent = np.zeros(len(fresh), np.bool_)  # in memory that was there before
        for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
            place = k - arrays.writes_at[node]
            value = arrays.writes[k]
            if ends[wrote + place] and arrays.optional[value]:
                continue
            shared, own = -1, arrays.size[value]
            if not final[wrote + place]:
                if arrays.view_of[k] != NO_VIEW:
                    own = 0
                    if arrays.view_of[k] >= 0:
                        shared = block[arrays.view_of[k]]
                else:
                    for o in range(arrays.over_at[k], arrays.over_at[k + 1]):
                        read = arrays.over[o]
                        if holders[block[read]] != 1 or held[block[read]] != own:
                            continue
                        dies = False
                        for r in range(first, end):
                            if arrays.reads[r] == read:
                                dies = ends[at[step] + r - first]
                        if dies:
                            shared = block[read]
                            break
            lent[place] = shared >= 0
            if shared < 0:
                shared = blocks
                blocks += 1
                held[shared] = own
            holders[shared] += 1
            fresh[place] = shared
        firsts[step + 1] = blocks
        for r in range(first, end):
            if ends[at[step] + r - first]:
                _release(block[arrays.reads[r]], step, last, holders)
        for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
            place = k - arrays.writes_at[node]
            if fresh[place] < 0:
                continue
            block[arrays.writes[k]] = fresh[place]
            if ends[wrote + place] and (lent[place] or not arrays.unread_stay):
                _release(fresh[place], step, last, holders)
    return firsts, held[:blocks], last[:blocks]


@inner
def _release(block: int, step: int, last: Ints, holders: Ints) -> None:
    holders[block] -= 1
    if holders[block] == 0:
        last[block] = step


@entry
def trim(arrays: Arrays, order: Ints) -> Ints:
    """Drop every compute that is not a node's first and whose results nobody needs."""
    first = np.full(len(arrays.cost), -1, np.int64)
    for step in range(len(order)):
        if first[order[step]] < 0:
            first[order[step]] = step
    needed = arrays.output.copy()
    keep = np.zeros(len(order), np.bool_)
    for step in range(len(order) - 1, -1, -1):
        node = order[step]
        useful = first[node] == step
        for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
            useful = useful or needed[arrays.writes[k]]
        if not useful:
            continue
        keep[step] = True
        for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
            needed[arrays.writes[k]] = False
        for k in range(arrays.reads_at[node], arrays.reads_at[node + 1]):
            needed[arrays.reads[k]] = True
    return order[keep]
