"""What the search does to an order: computes added, dropped and moved, singly and in groups, each change logged.

Invariant: after every move the order is legal, and `undo` brings back what was there before it.
"""

from __future__ import annotations

import numpy as np

from solvers.methods.auto.layout import (
    AFTER,
    AGAIN,
    AT,
    BEFORE,
    COUNT,
    CROWDED,
    END,
    LOG,
    LOGGED,
    LONGEST,
    REPEATED,
    RUNS,
    SLOTS,
    STACK,
)
from solvers.methods.auto.state import delete, first_read, insert, relocate, run_before, unread
from solvers.methods.exact.tables import MOST, NODES, ONCE, READS, READS_AT, WRITER, WRITES, WRITES_AT
from solvers.orders.arrays import Ints
from solvers.orders.compiled import inner

_NEAR = 64  # computes by which a group may move
_DEEP = 12  # computes put in by one move
_PUSHED = 5  # pushed on to make room, at most


@inner
def _note(s: Ints, node: int, slot: int, was: int, before: int) -> None:
    """A change: a node, its slot or -1, what that was or -1, and the slot before that."""
    place = s[LOG] + 4 * s[LOGGED]
    s[place], s[place + 1], s[place + 2], s[place + 3] = node, slot, was, before
    s[LOGGED] += 1


@inner
def undo(t: Ints, s: Ints, kept: int) -> None:
    """Take changes back, all but the first so many."""
    while s[LOGGED] > kept:
        s[LOGGED] -= 1
        place = s[LOG] + 4 * s[LOGGED]
        node, slot, was, before = s[place], s[place + 1], s[place + 2], s[place + 3]
        if slot < 0:
            insert(t, s, node, was, before)
        elif was < 0:
            delete(t, s, node, run_before(t, s, node, slot + 1))
        else:
            relocate(t, s, node, run_before(t, s, node, slot + 1), was, before)


@inner
def _shift(t: Ints, s: Ints, node: int, k: int, slot: int, before: int) -> None:
    here = s[s[RUNS] + node * MOST + k]
    _note(s, node, slot, here, s[s[BEFORE] + here])
    relocate(t, s, node, k, slot, before)


@inner
def _room(t: Ints, s: Ints, before: int, lean: int) -> int:
    """A free slot right after the compute in a slot, if need be made by pushing others on; or -1.

    `lean`: 1 leaves what is free on the left for others that come after `before`, -1 on the right, 0 on both sides.
    """
    after = s[s[AFTER] + before]
    if after - before < 2:
        if not _push(t, s, before):
            s[CROWDED] = 1
            return -1
        after = s[s[AFTER] + before]
    if lean > 0:
        return after - 1
    return before + 1 if lean < 0 else (before + after) // 2


@inner
def _push(t: Ints, s: Ints, before: int) -> bool:
    """Push the computes after a slot on, up to the next gap."""
    last = s[s[AFTER] + before]
    many = 1
    while s[s[AFTER] + last] - last < 2:
        last = s[s[AFTER] + last]
        many += 1
        if many > _PUSHED or last >= s[SLOTS] - 2:
            return False
    if s[LOGGED] + many > LONGEST - 2:
        return False
    gap = s[s[AFTER] + last] - last
    slot = last + max(1, gap // 2)
    for _ in range(many):
        before = s[s[BEFORE] + last]
        node = s[s[AT] + last]
        _shift(t, s, node, run_before(t, s, node, last + 1), slot, before)
        last = before
        slot -= 1
    return True


@inner
def _put(t: Ints, s: Ints, node: int, before: int) -> int:
    """Compute a node right before the compute that follows a slot; its own slot, or -1 where there is no room."""
    if s[s[COUNT] + node] == MOST or s[LOGGED] > LONGEST - 4:
        return -1
    slot = _room(t, s, before, -1)
    if slot >= 0:
        insert(t, s, node, slot, before)
        _note(s, node, slot, -1, -1)
    return slot


@inner
def _take(t: Ints, s: Ints, node: int, k: int) -> None:
    slot = s[s[RUNS] + node * MOST + k]
    _note(s, node, -1, slot, s[s[BEFORE] + slot])
    delete(t, s, node, k)


@inner
def drop(t: Ints, s: Ints, node: int, k: int) -> None:
    """Take a repeated compute out, and those whose results only it read; nothing if the first may not go."""
    if k == 0 and not unread(t, s, node, 0):
        return
    top = s[LOGGED]
    _take(t, s, node, k)
    while top < s[LOGGED]:
        node, slot = s[s[LOG] + 4 * top], s[s[LOG] + 4 * top + 2]
        top += 1
        for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
            parent = t[t[WRITER] + t[t[READS] + r]]
            if s[s[COUNT] + parent] < 2 or s[LOGGED] > LONGEST - 4:
                continue
            k = run_before(t, s, parent, slot)
            if k >= 0 and unread(t, s, parent, k):
                _take(t, s, parent, k)


@inner
def drop_any(t: Ints, s: Ints) -> None:
    """Drop some compute of some node that is computed more than once."""
    if s[REPEATED] and s[LOGGED] < LONGEST // 2:
        node = s[s[AGAIN] + np.random.randint(s[REPEATED])]
        drop(t, s, node, np.random.randint(s[s[COUNT] + node]))


@inner
def repeat(t: Ints, s: Ints) -> None:
    """Compute again what some compute reads, right before it, and perhaps what that reads in turn."""
    node = np.random.randint(t[NODES])
    reads = t[t[READS_AT] + node + 1] - t[t[READS_AT] + node]
    if reads == 0:
        return
    anchor = s[s[RUNS] + node * MOST + np.random.randint(s[s[COUNT] + node])]
    stack = s[STACK]
    s[stack] = t[t[READS] + t[t[READS_AT] + node] + np.random.randint(reads)]
    top = 1
    while top and s[LOGGED] < _DEEP:
        top -= 1
        writer = t[t[WRITER] + s[stack + top]]
        before = s[s[BEFORE] + anchor]
        if t[t[ONCE] + writer] or s[s[AT] + before] == writer:
            continue
        slot = _put(t, s, writer, before)
        if slot < 0:
            return
        anchor = slot
        for r in range(t[t[READS_AT] + writer], t[t[READS_AT] + writer + 1]):
            value = t[t[READS] + r]
            of = run_before(t, s, t[t[WRITER] + value], anchor)
            gone = s[s[END] + value * MOST + of] == anchor  # nothing reads it later: it might be made again as well
            if top < LONGEST and np.random.random() < (0.5 if gone else 0.05):
                s[stack + top] = value
                top += 1


@inner
def _bounds(t: Ints, s: Ints, node: int, k: int) -> tuple[int, int]:
    """The slots between which a compute may stand with all that is read staying as it is."""
    runs = s[RUNS] + node * MOST
    here = s[runs + k]
    low = 0 if k == 0 else s[runs + k - 1]
    for w in range(t[t[WRITES_AT] + node], t[t[WRITES_AT] + node + 1] if k else 0):
        low = max(low, s[s[END] + t[t[WRITES] + w] * MOST + k - 1])
    high = first_read(t, s, node, here)
    if k + 1 < s[s[COUNT] + node]:
        high = min(high, s[runs + k + 1])
    for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
        writer = t[t[WRITER] + t[t[READS] + r]]
        of = run_before(t, s, writer, here)
        low = max(low, s[s[RUNS] + writer * MOST + of])
        if of + 1 < s[s[COUNT] + writer]:
            high = min(high, s[s[RUNS] + writer * MOST + of + 1])
    return low, high


@inner
def move(t: Ints, s: Ints, node: int, k: int) -> None:
    """Move a compute to another place between what it reads and who reads it."""
    here = s[s[RUNS] + node * MOST + k]
    low, high = _bounds(t, s, node, k)
    kind = np.random.randint(4)
    if kind == 0:
        target = low
    elif kind == 1:
        target = s[s[BEFORE] + high]
    else:
        target = low + np.random.randint(high - low)
        while s[s[AT] + target] < 0 and target > 0:
            target -= 1
    if target == here or target == s[s[BEFORE] + here] or s[LOGGED] > LONGEST - 4:
        return
    slot = _room(t, s, target, 1 if kind == 0 else -1 if kind == 1 else 0)
    if slot >= 0:
        _shift(t, s, node, k, slot, target)


@inner
def move_any(t: Ints, s: Ints) -> None:
    node = np.random.randint(t[NODES] - 1)
    move(t, s, node, np.random.randint(s[s[COUNT] + node]))


@inner
def move_with(t: Ints, s: Ints) -> None:
    """Move a compute, and then some of those that it reads from."""
    node = np.random.randint(t[NODES] - 1)
    k = np.random.randint(s[s[COUNT] + node])
    move(t, s, node, k)
    if s[LOGGED] == 0:
        return
    for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
        writer = t[t[WRITER] + t[t[READS] + r]]
        if np.random.random() < 0.5:
            move(t, s, writer, run_before(t, s, writer, s[s[RUNS] + node * MOST + k]))


@inner
def _behind(t: Ints, s: Ints, slot: int, before: int) -> int:
    """Move the compute in a slot behind the one in slot `before`, if that may be; where it stands then, or -1."""
    if slot == before or slot == s[s[AFTER] + before]:
        return -1
    node = s[s[AT] + slot]
    k = run_before(t, s, node, slot + 1)
    low, high = _bounds(t, s, node, k)
    if before < low or before >= high or s[s[AFTER] + before] > high or s[LOGGED] > LONGEST - 4:
        return -1
    free = _room(t, s, before, 1)
    if free >= 0:
        _shift(t, s, node, k, free, before)
    return free


@inner
def move_group(t: Ints, s: Ints) -> None:
    """Move some computes that follow each other to a place not far away, in their order."""
    node = np.random.randint(t[NODES] - 1)
    slot = s[s[RUNS] + node * MOST + np.random.randint(s[s[COUNT] + node])]
    many, far = 2 + np.random.randint(6), 1 + np.random.randint(_NEAR)
    if np.random.random() < 0.5:
        _group_up(t, s, slot, many, far)
    else:
        _group_down(t, s, slot, many, far)


@inner
def _group_up(t: Ints, s: Ints, slot: int, many: int, far: int) -> None:
    target = s[s[BEFORE] + slot]
    for _ in range(far):
        if target > 0:
            target = s[s[BEFORE] + target]
    for _ in range(many):
        if slot >= s[SLOTS] - 2:
            return
        following = s[s[AFTER] + slot]
        target = _behind(t, s, slot, target)
        if target < 0 or s[s[AT] + following] < 0:  # pushed on, to make room
            return
        slot = following


@inner
def _group_down(t: Ints, s: Ints, slot: int, many: int, far: int) -> None:
    target = slot
    for _ in range(far):
        if s[s[AFTER] + target] < s[SLOTS] - 2:
            target = s[s[AFTER] + target]
    for _ in range(many):
        if slot <= 0 or slot == target or slot >= s[SLOTS] - 2:
            return
        following = s[s[BEFORE] + slot]
        if _behind(t, s, slot, target) < 0:
            return
        slot = following
