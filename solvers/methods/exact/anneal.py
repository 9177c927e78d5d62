"""Simulated annealing over what is recomputed when, the order of first computes kept.

A move runs a node again before one of its readers, perhaps with what it reads, and then drops runs that have become
unnecessary or for which there is now room. No move may raise the bytes over budget.
"""

from __future__ import annotations

import numpy as np

from solvers.methods.exact.runs import delete, insert, last_read, place_of, run_before, unread
from solvers.methods.exact.tables import (
    BUDGET,
    EXCESS,
    KEYS,
    MEMORY,
    NODES,
    ONCE,
    READS,
    READS_AT,
    SIZE,
    STEPS,
    TOTAL,
    WRITER,
    WRITES,
    WRITES_AT,
    get,
    stage_of,
)
from solvers.orders.arrays import Ints
from solvers.orders.compiled import entry, inner

_LOG = 64  # changes in one move, at most


@inner
def _room(t: Ints, s: Ints, node: int, stage: int) -> bool:
    """Whether what a run writes could be held instead, from the last use before it."""
    factor = t[NODES] + 1
    key = stage * factor + node
    k = run_before(t, s, node, key)
    made = stage_of(s, node, k) * factor + node
    final = place_of(s, key)
    for w in range(get(t, WRITES_AT, node), get(t, WRITES_AT, node + 1)):
        value = get(t, WRITES, w)
        if get(t, SIZE, value) == 0:
            continue
        most = s[BUDGET] - get(t, SIZE, value)
        first = place_of(s, max(made, last_read(t, s, value, made, key))) + 1
        for step in range(final - 1, first - 1, -1):
            if get(s, MEMORY, step) > most:
                return False
    return True


@inner
def _drop(t: Ints, s: Ints, node: int, stage: int, log: Ints, logged: int) -> int:
    """Delete a run, and the runs that only it read from."""
    factor = t[NODES] + 1
    top = logged
    delete(t, s, node, stage)
    log[logged] = -(stage * factor + node) - 1
    logged += 1
    while top < logged:
        key = -log[top] - 1
        top += 1
        if key < 0:
            continue
        for r in range(get(t, READS_AT, key % factor), get(t, READS_AT, key % factor + 1)):
            parent = get(t, WRITER, get(t, READS, r))
            k = run_before(t, s, parent, key)
            if k > 0 and logged < _LOG and unread(t, s, parent, k):
                before = stage_of(s, parent, k)
                delete(t, s, parent, before)
                log[logged] = -(before * factor + parent) - 1
                logged += 1
    return logged


@inner
def _undo(t: Ints, s: Ints, log: Ints, logged: int, kept: int) -> None:
    factor = t[NODES] + 1
    for place in range(logged - 1, kept - 1, -1):
        key = log[place]
        if key >= 0:
            delete(t, s, key % factor, key // factor)
        else:
            insert(t, s, (-key - 1) % factor, (-key - 1) // factor)


@entry
def anneal(t: Ints, s: Ints, best_keys: Ints, best: Ints, moves: int, hot: float, cold: float, seed: int) -> int:
    """Move about, cooling from `hot` to `cold`; returns the moves made. `best`: cost and length of the best keys."""
    np.random.seed(seed)
    nodes = t[NODES]
    factor = nodes + 1
    log = np.zeros(_LOG, np.int64)
    stack = np.zeros(_LOG, np.int64)
    made = 0
    for move in range(moves):
        heat = hot * (cold / hot) ** (move / moves)
        cost, over = s[TOTAL], s[EXCESS]
        logged = 0
        steps = s[STEPS]
        step = np.random.randint(steps)
        key = get(s, KEYS, step)
        node, stage = key % factor, key // factor
        low = 0
        adding = node == stage or np.random.random() < 0.5
        if not adding and over == 0 and not _room(t, s, node, stage):
            continue
        if adding:
            reads = get(t, READS_AT, node + 1) - get(t, READS_AT, node)
            if reads == 0:
                continue
            value = get(t, READS, get(t, READS_AT, node) + np.random.randint(reads))
            low = _again(t, s, value, key, log, stack)
            logged = stack[0]
            if low < 0:
                continue
            tries = 1 + np.random.randint(6)
        else:
            logged = _drop(t, s, node, stage, log, 0)
            tries = np.random.randint(3)
            low = step
        for _ in range(tries):
            if logged >= _LOG - 8:
                break
            low = min(low, s[STEPS] - 1)
            pick = low + np.random.randint(s[STEPS] - low)
            other = get(s, KEYS, pick)
            if other % factor == other // factor or other in log[:logged]:
                continue
            excess = s[EXCESS]
            if excess == 0 and not _room(t, s, other % factor, other // factor):
                continue
            kept = logged
            logged = _drop(t, s, other % factor, other // factor, log, logged)
            if s[EXCESS] > max(excess, over):
                _undo(t, s, log, logged, kept)
                logged = kept
        rise = s[TOTAL] - cost
        if s[EXCESS] < over or (s[EXCESS] == over and (rise <= 0 or np.random.random() < np.exp(-rise / heat))):
            made += 1
            if s[EXCESS] == 0 and s[TOTAL] < best[0]:
                best[0], best[1] = s[TOTAL], s[STEPS]
                best_keys[: best[1]] = s[s[KEYS] : s[KEYS] + best[1]]
        else:
            _undo(t, s, log, logged, 0)
    return made


@inner
def _again(t: Ints, s: Ints, value: int, key: int, log: Ints, stack: Ints) -> int:
    """Compute a value again right before the step at `key` reads it, and perhaps what that reads in turn.

    Returns the step of the use before, from which on there may now be room, or -1; `stack[0]`: changes logged.
    """
    factor = t[NODES] + 1
    stage = key // factor
    logged, low = 0, -1
    stack[0] = value
    top = 1
    while top:
        top -= 1
        wanted = stack[top]
        writer = get(t, WRITER, wanted)
        k = run_before(t, s, writer, key)
        if get(t, ONCE, writer) or writer >= stage or stage_of(s, writer, k) == stage or logged >= _LOG // 2:
            continue
        fresh = stage * factor + writer
        copy_made = stage_of(s, writer, k) * factor + writer
        before = max(copy_made, last_read(t, s, wanted, copy_made, fresh))
        if not insert(t, s, writer, stage):
            continue
        place = place_of(s, before)
        low = place if low < 0 else min(low, place)
        log[logged] = fresh
        logged += 1
        for r in range(get(t, READS_AT, writer), get(t, READS_AT, writer + 1)):
            if top < _LOG and np.random.random() < 0.5:
                stack[top] = get(t, READS, r)
                top += 1
    stack[0] = logged
    return low
