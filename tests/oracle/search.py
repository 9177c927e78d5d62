"""The oracle's search, compiled: Dijkstra over states packed into three words.

Invariant: of two ways to one state, one that is as long and has as many bytes stuck is of no use; no other is cut.

Every first compute is paid for at the start, so that only repeats have a length: those that make most headway come
first among equals.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from tests.oracle.tables import NOT_A_VIEW, OF_RESIDENT, Ints, Tables

MOST = 15  # values, and nodes
_NONE = 15  # where a value's block is named after its first value: not held
_FREE = 15  # where a block is named after the value that made it: an input or a weight, which takes nothing
_HIGH = 1 << 62


@njit(cache=True)
def search(tables: Tables, budget: int, in_order: bool, by_peak: bool) -> tuple[int, Ints]:
    """(length, order) of the best way; length -1 if there is none."""
    every = (1 << len(tables.cost)) - 1
    last = 0  # nodes that write outputs
    for value in range(len(tables.size)):
        if tables.output[value]:
            last |= 1 << tables.writer[value]
    keys, low, pending = np.zeros((64, 3), np.int64), np.full(64, _HIGH), np.full((64, 2), _HIGH)
    state, parent, run = np.zeros(64, np.int64), np.full(64, -1), np.full(64, -1)
    table = np.full(256, -1)
    keys[0, 1] = keys[0, 2] = (1 << (4 * MOST)) - 1
    table[_slot(table, keys, keys[0])] = 0
    states, labels = 1, 1
    single = 0  # nodes that run once
    for node in range(len(tables.cost)):
        single |= tables.once[node] << node
    start = tables.resident if by_peak else tables.cost.sum()  # every first compute is paid for beforehand
    heap = [(start, 0, 0, 0)]
    made = np.zeros((4096, 6), np.int64)
    block, maker = np.zeros(MOST, np.int64), np.zeros(MOST, np.int64)
    while heap:
        length, _, stuck, label = heapq.heappop(heap)
        here = state[label]
        if stuck >= low[here]:
            continue
        low[here] = stuck
        ran, closed, place = keys[here, 0] & 0x7FFF, keys[here, 0] >> 15 & 0x7FFF, keys[here, 0] >> 30
        _unpack(keys[here, 1], block)
        _unpack(keys[here, 2], maker)
        if ran == every and closed == last and place == 0 and _only_outputs(tables, block):
            return length, _order(parent, run, label)
        for at in range(len(tables.kernel_at) - 1):
            next_place = tables.kernel_at[at] if place == 0 else place - 1
            node = tables.kernel[next_place]
            if tables.before[node] & ran & ~(1 << node):
                continue
            again = ran >> node & 1
            if again:
                if tables.once[node] or closed >> node & 1:
                    continue
            elif place == 0 and in_order and not _all_ran(tables, ran, at):
                continue
            next_place += 1
            ends = False
            for k in range(1, len(tables.kernel_at)):
                ends = ends or next_place == tables.kernel_at[k]
            ahead = -_ones(ran | 1 << node)
            alone = tables.kernel_at[at + 1] - tables.kernel_at[at] == 1 and place == 0
            dull = again and alone and not tables.unread_stay  # of no use if it leaves nothing
            flags = (ran | 1 << node) | ((0 if ends else next_place + 1) << 30)
            count = 0
            for final in range(2 if last >> node & 1 else 1):
                over = closed | final << node
                able = every & ~((ran | 1 << node) & single) & ~over
                count = _ways(tables, block, maker, over, able, node, stuck, made, count)
            for way in range(count):
                peak = made[way, 3]
                if peak > budget or (dull and made[way, 5] == 0):
                    continue
                far = max(length, peak) if by_peak else length + again * tables.cost[node]
                lost = stuck + made[way, 4]
                made[way, 0] = flags | made[way, 0] << 15
                if 2 * states >= len(table):
                    table = np.full(4 * len(table), -1)
                    for known in range(states):
                        table[_slot(table, keys, keys[known])] = known
                slot = _slot(table, keys, made[way])
                to = table[slot]
                if to < 0:
                    if states == len(keys):
                        keys = np.concatenate((keys, np.zeros_like(keys)))
                        low = np.concatenate((low, np.full_like(low, _HIGH)))
                        pending = np.concatenate((pending, np.full_like(pending, _HIGH)))
                    to = states
                    table[slot] = to
                    keys[to] = made[way, :3]
                    states += 1
                if lost >= low[to] or (pending[to, 0] <= far and pending[to, 1] <= lost):
                    continue
                pending[to, 0], pending[to, 1] = far, lost
                if labels == len(state):
                    state = np.concatenate((state, np.zeros_like(state)))
                    parent = np.concatenate((parent, np.zeros_like(parent)))
                    run = np.concatenate((run, np.zeros_like(run)))
                state[labels], parent[labels], run[labels] = to, label, node
                heapq.heappush(heap, (far, ahead, lost, labels))
                labels += 1
            if place:
                break
    return -1, np.zeros(0, np.int64)


@njit(cache=True)
def _ways(
    tables: Tables,
    block: Ints,
    maker: Ints,
    closed: int,
    able: int,
    node: int,
    stuck: int,
    made: Ints,
    count: int,
) -> int:
    """Every way to run a node now.

    As rows: nodes that have run for the last time, blocks, makers, memory meanwhile, bytes lost, values left.
    """
    reads = tables.reads[tables.reads_at[node] : tables.reads_at[node + 1]]
    writes = tables.writes[tables.writes_at[node] : tables.writes_at[node + 1]]
    for value in reads:
        if block[value] == _NONE:
            return count
    for value in writes:
        if block[value] != _NONE:
            return count  # it was held to be read first
    before = tables.resident + stuck + tables.work[node]
    for value in range(len(tables.size)):
        if block[value] == value and maker[value] != _FREE:
            before += tables.size[maker[value]]
    many = len(reads) + len(writes)
    new, by = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    ends = np.empty(many, np.bool_)
    for guess in range(1 << many):
        possible = True
        for k in range(many):
            ends[k] = guess >> k & 1
            value = reads[k] if k < len(reads) else writes[k - len(reads)]
            stays = tables.output[value] == 1 and closed >> tables.writer[value] & 1 == 1
            if (ends[k] and stays) or not (ends[k] or stays or tables.readers[value] & able):
                possible = False
        if not possible:
            continue
        new[:], by[:] = block, maker
        taken, lost = 0, 0
        for k in range(len(writes)):
            value, row = writes[k], tables.writes_at[node] + k
            if ends[len(reads) + k] and tables.optional[value]:
                continue
            lends = -1  # the read in whose memory the write comes to lie
            free = False
            if not (tables.output[value] and closed >> node & 1):
                if tables.base[row] != NOT_A_VIEW:
                    free = tables.base[row] == OF_RESIDENT
                    lends = tables.base[row]
                else:
                    for o in range(tables.over_at[row], tables.over_at[row + 1]):
                        if lends < 0 and _may_take(tables, new, by, reads, ends, tables.over[o], value):
                            lends = tables.over[o]
            if lends >= 0:
                new[value], by[value] = new[lends], by[lends]
            else:
                new[value], by[value] = MOST + 1 + k, _FREE if free else value
                taken += 0 if free else tables.size[value]
        for k in range(len(reads)):
            if ends[k]:
                new[reads[k]] = _NONE
        left = 0
        for k in range(len(writes)):
            value = writes[k]
            left += not ends[len(reads) + k]
            if ends[len(reads) + k] and new[value] != _NONE:
                if tables.unread_stay and new[value] > MOST and by[value] != _FREE:
                    lost += tables.size[value]
                new[value] = _NONE
        made[count, 0] = closed
        _pack(new, by, made[count])
        made[count, 3], made[count, 4], made[count, 5] = before + taken, lost, left
        count += 1
    return count


@njit(cache=True)
def _may_take(tables: Tables, block: Ints, maker: Ints, reads: Ints, ends: Ints, read: int, write: int) -> bool:
    """This is the read's last use, nothing else lives in its memory, and it has just the size."""
    if maker[read] == _FREE or tables.size[read] != tables.size[write]:
        return False
    sharers = 0
    for value in range(len(tables.size)):
        sharers += block[value] == block[read]
    for k in range(len(reads)):
        if reads[k] == read and ends[k]:
            return sharers == 1 and tables.size[maker[read]] == tables.size[write]
    return False


@njit(cache=True)
def _pack(block: Ints, maker: Ints, row: Ints) -> None:
    """Blocks named after the first value in each."""
    row[1] = row[2] = 0
    for value in range(MOST):
        name = _NONE
        if block[value] != _NONE:
            name = value
            for other in range(value - 1, -1, -1):
                if block[other] == block[value]:
                    name = other
        row[1] |= name << (4 * value)
        row[2] |= (_NONE if name == _NONE else maker[value]) << (4 * value)


@njit(cache=True)
def _unpack(word: int, row: Ints) -> None:
    for value in range(MOST):
        row[value] = word >> (4 * value) & 15


@njit(cache=True)
def _only_outputs(tables: Tables, block: Ints) -> bool:
    wrong = 0
    for value in range(len(tables.size)):
        wrong += (block[value] != _NONE) != (tables.output[value] == 1)
    return wrong == 0


@njit(cache=True)
def _all_ran(tables: Tables, ran: int, before: int) -> bool:
    wanted = 0
    for place in range(tables.kernel_at[before]):
        wanted |= 1 << tables.kernel[place]
    return ran & wanted == wanted


@njit(cache=True)
def _ones(word: int) -> int:
    count = 0
    while word:
        count += word & 1
        word >>= 1
    return count


@njit(cache=True)
def _slot(table: Ints, keys: Ints, key: Ints) -> int:
    """Where the key is, or is to be."""
    mask = len(table) - 1
    mixed = (key[0] * 0x1E3779B97F4A7C15 ^ key[1] * 0x3F58476D1CE4E5B9 ^ key[2] * 0x14D049BB133111EB) & (_HIGH - 1)
    slot = (mixed ^ mixed >> 29) & mask
    while table[slot] >= 0:
        known = keys[table[slot]]
        if known[0] == key[0] and known[1] == key[1] and known[2] == key[2]:
            break
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _order(parent: Ints, run: Ints, label: int) -> Ints:
    count, at = 0, label
    while parent[at] >= 0:
        count += 1
        at = parent[at]
    order = np.empty(count, np.int64)
    while parent[label] >= 0:
        count -= 1
        order[count] = run[label]
        label = parent[label]
    return order
