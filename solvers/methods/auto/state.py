"""Computes put into an order and taken out, the memory of every slot kept as it changes.

Invariant: memory is counted as `measure` counts it or higher (a write takes a read's place only where the first read
that allows it ends there, and never if it is an output or optional; what is still a view is counted in full); every
operation is undone exactly by its opposite.
"""

from __future__ import annotations

import numpy as np

from solvers.methods.auto.layout import (
    AFTER,
    AGAIN,
    AT,
    BEFORE,
    COUNT,
    EMPTY,
    END,
    HELD,
    PLACE,
    REPEATED,
    RUNS,
    SHARED,
    SLOTS,
    STEPS,
    TOTAL,
)
from solvers.methods.auto.tree import add, bump, clear, grow
from solvers.methods.exact.tables import (
    COST,
    MOST,
    NODES,
    OPTIONAL,
    READS,
    READS_AT,
    SAVED,
    SIZE,
    STAY,
    USERS,
    USERS_AT,
    VALUES,
    WORKSPACE,
    WRITER,
    WRITES,
    WRITES_AT,
)
from solvers.orders.arrays import Ints
from solvers.orders.compiled import entry, inner


@inner
def run_before(t: Ints, s: Ints, node: int, slot: int) -> int:
    """The last compute of a node before a slot, or -1."""
    base = s[RUNS] + node * MOST
    k = s[s[COUNT] + node] - 1
    while k >= 0 and s[base + k] >= slot:
        k -= 1
    return k


@inner
def last_read(t: Ints, s: Ints, value: int, low: int, high: int) -> int:
    """The last slot between `low` and `high` at which a value is read, or `low`."""
    best = low
    for u in range(t[t[USERS_AT] + value], t[t[USERS_AT] + value + 1]):
        user = t[t[USERS] + u]
        base = s[RUNS] + user * MOST
        for k in range(s[s[COUNT] + user] - 1, -1, -1):
            slot = s[base + k]
            if slot < high:
                best = max(best, slot)
                break
    return best


@inner
def first_read(t: Ints, s: Ints, node: int, slot: int) -> int:
    """The first slot after this one at which anything that a node writes is read, or the slot of the end."""
    best = s[SLOTS] - 2
    for w in range(t[t[WRITES_AT] + node], t[t[WRITES_AT] + node + 1]):
        value = t[t[WRITES] + w]
        for u in range(t[t[USERS_AT] + value], t[t[USERS_AT] + value + 1]):
            user = t[t[USERS] + u]
            base = s[RUNS] + user * MOST
            for k in range(s[s[COUNT] + user]):
                if s[base + k] > slot:
                    best = min(best, s[base + k])
                    break
    return best


@inner
def unread(t: Ints, s: Ints, node: int, k: int) -> bool:
    """Whether nobody reads what a node's k-th compute writes."""
    made = s[s[RUNS] + node * MOST + k]
    for w in range(t[t[WRITES_AT] + node], t[t[WRITES_AT] + node + 1]):
        if s[s[END] + t[t[WRITES] + w] * MOST + k] != made:
            return False
    return True


@inner
def _cover(t: Ints, s: Ints, value: int, made: int, end: int) -> int:
    """The last slot at which a copy is in memory; before `made` if it is left out."""
    if end > made:
        return end
    if t[t[OPTIONAL] + value]:
        return made - 1
    if t[STAY]:
        return s[SLOTS] - 2
    return made


@inner
def _saved(t: Ints, s: Ints, value: int, slot: int) -> int:
    """What the compute at a slot writes in the place of this value, if it is the last to read it."""
    node = s[s[AT] + slot]
    for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
        if t[t[READS] + r] == value:
            return t[t[SAVED] + r]
    return 0


@inner
def _hold(t: Ints, s: Ints, value: int, made: int, end: int, sign: int) -> None:
    """Add a whole copy to the memory in use, or take it away."""
    size = t[t[SIZE] + value]
    if size == 0:
        return
    final = _cover(t, s, value, made, end)
    if final >= made:
        add(s, made, final, sign * size)
    if end > made and s[s[SHARED] + value]:
        bump(s, end, -sign * _saved(t, s, value, end))


@inner
def _end_at(t: Ints, s: Ints, value: int, k: int, made: int, end: int) -> None:
    """Let a copy end elsewhere."""
    old = s[s[END] + value * MOST + k]
    if old == end:
        return
    s[s[END] + value * MOST + k] = end
    size = t[t[SIZE] + value]
    if size == 0:
        return
    before, after = _cover(t, s, value, made, old), _cover(t, s, value, made, end)
    if after > before:
        add(s, before + 1, after, size)
    elif before > after:
        add(s, after + 1, before, -size)
    if s[s[SHARED] + value]:
        if old > made:
            bump(s, old, _saved(t, s, value, old))
        if end > made:
            bump(s, end, -_saved(t, s, value, end))


@inner
def insert(t: Ints, s: Ints, node: int, slot: int, before: int) -> None:
    """Compute a node in a free slot, right after the compute in slot `before`."""
    k = run_before(t, s, node, slot)
    runs, count = s[RUNS] + node * MOST, s[s[COUNT] + node]
    for place in range(count, k + 1, -1):
        s[runs + place] = s[runs + place - 1]
    s[runs + k + 1] = slot
    _link(t, s, node, slot, before)
    bump(s, slot, EMPTY + t[t[WORKSPACE] + node])
    for w in range(t[t[WRITES_AT] + node], t[t[WRITES_AT] + node + 1]):
        value = t[t[WRITES] + w]
        ends = s[END] + value * MOST
        for place in range(count, k + 1, -1):
            s[ends + place] = s[ends + place - 1]
        end = slot
        if k >= 0 and s[ends + k] > slot:
            end = s[ends + k]
            _end_at(t, s, value, k, s[runs + k], last_read(t, s, value, s[runs + k], slot))
        s[ends + k + 1] = end
        _hold(t, s, value, slot, end, 1)
    for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
        value = t[t[READS] + r]
        writer = t[t[WRITER] + value]
        k = run_before(t, s, writer, slot)
        if s[s[END] + value * MOST + k] < slot:
            _end_at(t, s, value, k, s[s[RUNS] + writer * MOST + k], slot)


@inner
def delete(t: Ints, s: Ints, node: int, k: int) -> None:
    """Undo `insert`: a node's k-th compute; what read it reads the one before, if there is one."""
    runs, count = s[RUNS] + node * MOST, s[s[COUNT] + node]
    slot = s[runs + k]
    for w in range(t[t[WRITES_AT] + node], t[t[WRITES_AT] + node + 1]):
        value = t[t[WRITES] + w]
        ends = s[END] + value * MOST
        end = s[ends + k]
        _hold(t, s, value, slot, end, -1)
        if k > 0 and end > slot:
            _end_at(t, s, value, k - 1, s[runs + k - 1], end)
        for place in range(k, count - 1):
            s[ends + place] = s[ends + place + 1]
    for place in range(k, count - 1):
        s[runs + place] = s[runs + place + 1]
    s[s[COUNT] + node] = count - 1
    for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
        value = t[t[READS] + r]
        writer = t[t[WRITER] + value]
        of = run_before(t, s, writer, slot)
        if s[s[END] + value * MOST + of] == slot:
            made = s[s[RUNS] + writer * MOST + of]
            again = s[SLOTS] if of + 1 == s[s[COUNT] + writer] else s[s[RUNS] + writer * MOST + of + 1]
            _end_at(t, s, value, of, made, last_read(t, s, value, made, again))
    bump(s, slot, -EMPTY - t[t[WORKSPACE] + node])
    s[s[COUNT] + node] = count
    _unlink(t, s, node, slot)


@inner
def relocate(t: Ints, s: Ints, node: int, k: int, slot: int, before: int) -> None:
    """Move a node's k-th compute to a free slot right after the compute in slot `before`.

    In between there must be no reader of what it writes, no compute of what it reads, and none of its own.
    """
    here = s[s[RUNS] + node * MOST + k]
    s[s[RUNS] + node * MOST + k] = slot
    _step_over(s, node, here, slot, before)
    for w in range(t[t[WRITES_AT] + node], t[t[WRITES_AT] + node + 1]):
        value = t[t[WRITES] + w]
        size = t[t[SIZE] + value]
        end = s[s[END] + value * MOST + k]
        if end == here:
            _hold(t, s, value, here, here, -1)
            s[s[END] + value * MOST + k] = slot
            _hold(t, s, value, slot, slot, 1)
        elif size and slot < here:
            add(s, slot, here - 1, size)
        elif size:
            add(s, here, slot - 1, -size)
    for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
        value = t[t[READS] + r]
        writer = t[t[WRITER] + value]
        of = run_before(t, s, writer, slot)
        made, end = s[s[RUNS] + writer * MOST + of], s[s[END] + value * MOST + of]
        if end == here:
            again = s[SLOTS] if of + 1 == s[s[COUNT] + writer] else s[s[RUNS] + writer * MOST + of + 1]
            _end_at(t, s, value, of, made, slot if slot > here else last_read(t, s, value, made, again))
        elif end < slot:
            _end_at(t, s, value, of, made, slot)
    workspace = EMPTY + t[t[WORKSPACE] + node]
    bump(s, slot, workspace)
    bump(s, here, -workspace)
    s[s[AT] + here] = -1


@inner
def _step_over(s: Ints, node: int, here: int, slot: int, before: int) -> None:
    """A node stands in both slots until all is reckoned, but only the new one is linked."""
    first, after = s[s[BEFORE] + here], s[s[AFTER] + here]
    s[s[AFTER] + first], s[s[BEFORE] + after] = after, first
    after = s[s[AFTER] + before]
    s[s[AFTER] + before] = s[s[BEFORE] + after] = slot
    s[s[BEFORE] + slot], s[s[AFTER] + slot] = before, after
    s[s[AT] + slot] = node


@inner
def _link(t: Ints, s: Ints, node: int, slot: int, before: int) -> None:
    after = s[s[AFTER] + before]
    s[s[AFTER] + before] = s[s[BEFORE] + after] = slot
    s[s[BEFORE] + slot], s[s[AFTER] + slot] = before, after
    s[s[AT] + slot] = node
    s[STEPS] += 1
    s[TOTAL] += t[t[COST] + node]
    s[s[COUNT] + node] += 1
    if s[s[COUNT] + node] == 2:
        s[s[AGAIN] + s[REPEATED]] = node
        s[s[PLACE] + node] = s[REPEATED]
        s[REPEATED] += 1


@inner
def _unlink(t: Ints, s: Ints, node: int, slot: int) -> None:
    before, after = s[s[BEFORE] + slot], s[s[AFTER] + slot]
    s[s[AFTER] + before], s[s[BEFORE] + after] = after, before
    s[s[AT] + slot] = -1
    s[STEPS] -= 1
    s[TOTAL] -= t[t[COST] + node]
    s[s[COUNT] + node] -= 1
    if s[s[COUNT] + node] == 1:
        s[REPEATED] -= 1
        place, other = s[s[PLACE] + node], s[s[AGAIN] + s[REPEATED]]
        s[s[AGAIN] + place] = other
        s[s[PLACE] + other] = place


@entry
def fill(t: Ints, s: Ints, order: Ints) -> None:
    """The order into an empty or a used state, spread evenly; a node's computes beyond the most there may be are left
    out. The order ends with the node that reads the outputs."""
    slots = s[SLOTS]
    clear(s)
    for slot in range(slots):
        s[s[AT] + slot] = -1
    for node in range(t[NODES]):
        s[s[COUNT] + node] = 0
    s[STEPS] = s[TOTAL] = s[REPEATED] = 0
    s[s[AFTER]] = slots - 1
    s[s[BEFORE] + slots - 1] = 0
    before = 0
    steps = len(order)
    leaves = s[HELD]
    for step in range(steps):
        node = order[step]
        count = s[s[COUNT] + node]
        if count == MOST:
            continue
        slot = slots - 2 if step == steps - 1 else 1 + (step + 1) * (slots - 4) // (steps + 1)
        s[s[RUNS] + node * MOST + count] = slot
        for w in range(t[t[WRITES_AT] + node], t[t[WRITES_AT] + node + 1]):
            s[s[END] + t[t[WRITES] + w] * MOST + count] = slot
        for r in range(t[t[READS_AT] + node], t[t[READS_AT] + node + 1]):
            value = t[t[READS] + r]
            s[s[END] + value * MOST + s[s[COUNT] + t[t[WRITER] + value]] - 1] = slot
        _link(t, s, node, slot, before)
        s[leaves + slot] = t[t[WORKSPACE] + node]
        before = slot
    change = _changes(t, s)
    held = 0
    for slot in range(slots - 1):
        held += change[slot]
        s[leaves + slot] += held
    grow(s)


@inner
def _changes(t: Ints, s: Ints) -> Ints:
    """How much more is held at each slot than at the one before."""
    change = np.zeros(s[SLOTS] + 1, np.int64)
    for value in range(t[VALUES]):
        size = t[t[SIZE] + value]
        for k in range(s[s[COUNT] + t[t[WRITER] + value]] if size else 0):
            made, end = s[s[RUNS] + t[t[WRITER] + value] * MOST + k], s[s[END] + value * MOST + k]
            final = _cover(t, s, value, made, end)
            if final >= made:
                change[made] += size
                change[final + 1] -= size
            if end > made and s[s[SHARED] + value]:
                saved = _saved(t, s, value, end)
                change[end] -= saved
                change[end + 1] += saved
    return change


@entry
def order_of(s: Ints) -> Ints:
    """The order of computes, without the last node, which only reads the outputs."""
    order = np.empty(s[STEPS] - 1, np.int64)
    slot = s[s[AFTER]]
    for step in range(len(order)):
        order[step] = s[s[AT] + slot]
        slot = s[s[AFTER] + slot]
    return order
