"""A set of runs for the annealing: added to and taken from, the memory at every step kept as it changes.

A schedule is a set of runs: (stage, node) for each compute of a node before the first compute of the stage, in index
order within a stage.

Invariant: memory is counted as `measure` counts it or higher (a write takes a read's place only where the first read
that allows it ends there, and never if it is an output or optional); the caller measures what it gets.
"""

from __future__ import annotations

import numpy as np

from solvers.methods.exact.tables import (
    ACROSS,
    BUDGET,
    COST,
    COUNT,
    EXCESS,
    KEYS,
    MEMORY,
    MOST,
    NODES,
    OPTIONAL,
    READS,
    READS_AT,
    RESIDENT,
    RUNS,
    SAVED,
    SIZE,
    STAY,
    STEPS,
    TOTAL,
    USERS,
    USERS_AT,
    VALUES,
    WORKSPACE,
    WRITER,
    WRITES,
    WRITES_AT,
    blank,
    get,
    keys_of,
    put,
    put_stage,
    stage_of,
)
from solvers.orders.arrays import Ints
from solvers.orders.compiled import entry, inner

_END = 1 << 60


def start(tables: Ints, budget: int, order: Ints) -> Ints:
    """The state nearest to an order; the tables are of a problem with a last node that reads the outputs."""
    nodes = int(tables[NODES])
    room = 4 * nodes + 1000
    keys = keys_of(np.append(order, nodes - 1), nodes)
    if len(keys) > room:
        keys = keys_of(np.arange(nodes), nodes)
    state = blank(nodes, room, budget)
    _fill(tables, state, keys)
    return state


@entry
def _fill(t: Ints, s: Ints, keys: Ints) -> None:
    nodes = t[NODES]
    steps = 0
    for key in keys:
        node = key % (nodes + 1)
        if get(s, COUNT, node) == MOST:
            continue
        put(s, RUNS, node * MOST + get(s, COUNT, node), key // (nodes + 1))
        put(s, COUNT, node, get(s, COUNT, node) + 1)
        put(s, KEYS, steps, key)
        put(s, MEMORY, steps, t[RESIDENT] + get(t, WORKSPACE, node))
        s[TOTAL] += get(t, COST, node)
        steps += 1
    s[STEPS] = steps
    for value in range(t[VALUES]):
        for k in range(get(s, COUNT, get(t, WRITER, value))):
            _hold(t, s, value, k, 1)
    excess = 0
    for step in range(steps):
        excess += max(0, get(s, MEMORY, step) - s[BUDGET])
    s[EXCESS] = excess


@inner
def place_of(s: Ints, key: int) -> int:
    """The step of a key, or where it would stand."""
    low, high = 0, s[STEPS]
    while low < high:
        middle = (low + high) // 2
        if get(s, KEYS, middle) < key:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def last_read(t: Ints, s: Ints, value: int, low: int, high: int) -> int:
    """The last key between `low` and `high` at which a value is read, or -1."""
    factor = t[NODES] + 1
    best = -1
    for u in range(get(t, USERS_AT, value), get(t, USERS_AT, value + 1)):
        user = get(t, USERS, u)
        for k in range(get(s, COUNT, user) - 1, -1, -1):
            key = stage_of(s, user, k) * factor + user
            if key < high:
                if key > low and key > best:
                    best = key
                break
    return best


@inner
def _hold(t: Ints, s: Ints, value: int, k: int, sign: int) -> None:
    """Add the k-th copy of a value to the memory in use, or take it away."""
    size = get(t, SIZE, value) * sign
    if size == 0:
        return
    factor = t[NODES] + 1
    node = get(t, WRITER, value)
    made = stage_of(s, node, k) * factor + node
    last = k + 1 == get(s, COUNT, node)
    again = _END if last else stage_of(s, node, k + 1) * factor + node
    end = last_read(t, s, value, made, again)
    if end < 0:
        if get(t, OPTIONAL, value):
            return
        end = _END if t[STAY] else made
    first = place_of(s, made)
    final = s[STEPS] - 1 if end == _END else place_of(s, end)
    budget = s[BUDGET]
    excess = 0
    memory = s[s[MEMORY] + first : s[MEMORY] + final + 1]
    for step in range(len(memory)):
        before = memory[step]
        memory[step] = before + size
        excess += max(0, before + size - budget) - max(0, before - budget)
    across = s[s[ACROSS] + first : s[ACROSS] + final + (end == _END)]
    for step in range(len(across)):
        across[step] += size
    if end != _END and end != made:
        user = end % factor
        for r in range(get(t, READS_AT, user), get(t, READS_AT, user + 1)):
            if get(t, READS, r) == value and get(t, SAVED, r):
                before = get(s, MEMORY, final)
                after = before - sign * get(t, SAVED, r)
                put(s, MEMORY, final, after)
                excess += max(0, after - budget) - max(0, before - budget)
    s[EXCESS] += excess


@inner
def run_before(t: Ints, s: Ints, node: int, key: int) -> int:
    """The last run of a node before a key, or -1."""
    factor = t[NODES] + 1
    for k in range(get(s, COUNT, node) - 1, -1, -1):
        if stage_of(s, node, k) * factor + node < key:
            return k
    return -1


@inner
def _copies(t: Ints, s: Ints, node: int, key: int, sign: int) -> None:
    """Add or take away the copies that a run of `node` at `key` reads."""
    for r in range(get(t, READS_AT, node), get(t, READS_AT, node + 1)):
        value = get(t, READS, r)
        _hold(t, s, value, run_before(t, s, get(t, WRITER, value), key), sign)


@inner
def insert(t: Ints, s: Ints, node: int, stage: int) -> bool:
    """Run a node again before the first compute of a stage."""
    factor = t[NODES] + 1
    key = stage * factor + node
    steps, count = s[STEPS], get(s, COUNT, node)
    k = run_before(t, s, node, key)
    if count == MOST or steps == s[MEMORY] - s[KEYS] or (k + 1 < count and stage_of(s, node, k + 1) == stage):
        return False
    for w in range(get(t, WRITES_AT, node), get(t, WRITES_AT, node + 1)):
        _hold(t, s, get(t, WRITES, w), k, -1)
    _copies(t, s, node, key, -1)
    for place in range(count, k + 1, -1):
        put_stage(s, node, place, stage_of(s, node, place - 1))
    put_stage(s, node, k + 1, stage)
    put(s, COUNT, node, count + 1)
    place = place_of(s, key)
    for table in (KEYS, MEMORY, ACROSS):
        row = s[s[table] + place : s[table] + steps + 1]
        for step in range(len(row) - 1, 0, -1):
            row[step] = row[step - 1]
    put(s, KEYS, place, key)
    s[STEPS] = steps + 1
    put(s, ACROSS, place, get(s, ACROSS, place - 1))
    put(s, MEMORY, place, t[RESIDENT] + get(t, WORKSPACE, node) + get(s, ACROSS, place))
    s[EXCESS] += max(0, get(s, MEMORY, place) - s[BUDGET])
    s[TOTAL] += get(t, COST, node)
    _copies(t, s, node, key, 1)
    for w in range(get(t, WRITES_AT, node), get(t, WRITES_AT, node + 1)):
        _hold(t, s, get(t, WRITES, w), k, 1)
        _hold(t, s, get(t, WRITES, w), k + 1, 1)
    return True


@inner
def delete(t: Ints, s: Ints, node: int, stage: int) -> None:
    """Undo `_insert`."""
    factor = t[NODES] + 1
    key = stage * factor + node
    k = run_before(t, s, node, key + 1)
    for w in range(get(t, WRITES_AT, node), get(t, WRITES_AT, node + 1)):
        _hold(t, s, get(t, WRITES, w), k - 1, -1)
        _hold(t, s, get(t, WRITES, w), k, -1)
    _copies(t, s, node, key, -1)
    place = place_of(s, key)
    s[EXCESS] -= max(0, get(s, MEMORY, place) - s[BUDGET])
    s[STEPS] -= 1
    for table in (KEYS, MEMORY, ACROSS):
        row = s[s[table] + place : s[table] + s[STEPS] + 1]
        for step in range(len(row) - 1):
            row[step] = row[step + 1]
    put(s, COUNT, node, get(s, COUNT, node) - 1)
    for place in range(k, get(s, COUNT, node)):
        put_stage(s, node, place, stage_of(s, node, place + 1))
    s[TOTAL] -= get(t, COST, node)
    _copies(t, s, node, key, 1)
    for w in range(get(t, WRITES_AT, node), get(t, WRITES_AT, node + 1)):
        _hold(t, s, get(t, WRITES, w), k - 1, 1)


@inner
def unread(t: Ints, s: Ints, node: int, k: int) -> bool:
    """Whether nobody reads what a node's k-th run writes."""
    factor = t[NODES] + 1
    last = k + 1 == get(s, COUNT, node)
    made = stage_of(s, node, k) * factor + node
    again = _END if last else stage_of(s, node, k + 1) * factor + node
    for w in range(get(t, WRITES_AT, node), get(t, WRITES_AT, node + 1)):
        if last_read(t, s, get(t, WRITES, w), made, again) >= 0:
            return False
    return True
