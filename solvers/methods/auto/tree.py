"""The memory in use at every slot of an order, as a tree of maxima over blocks of slots: add to a range, ask for the
bytes over budget.

What a slot counts is a function of its memory with straight pieces: nothing up to the budget, then each byte once, and
above the roof many times. So each node of the tree keeps what all below it counted together when they were last asked,
how much that changes with each byte added to all of them, and how many bytes until one of them comes to another piece.
Asked again, only those are looked at in which something was added to some slots and not to others, or a slot crosses.

Invariant: memory at a slot is what is held there and what was added to all nodes above it; a slot without a compute is
so far below zero that it never counts. What a node keeps is true of what was added above it then (`ABOVE`), and only
while it is `KNOWN`; a change makes everything above it unknown.
"""

from __future__ import annotations

from solvers.methods.auto.layout import (
    ABOVE,
    ADDED,
    ASKED,
    BUDGET,
    DOWN,
    EMPTY,
    FIELDS,
    HELD,
    KNOWN,
    MAXIMUM,
    OVER,
    ROOF,
    SLOPE,
    SLOTS,
    TREE,
    UP,
    WIDE,
)
from solvers.orders.arrays import Ints
from solvers.orders.compiled import inner

_STEEP = 100  # what a byte above the roof counts besides
_FAR = 2 * EMPTY  # no other piece that way


@inner
def add(s: Ints, first: int, last: int, amount: int) -> None:
    """Add to the slots `first` to `last`, both included."""
    blocks = s[SLOTS] // WIDE
    left, right = blocks + first // WIDE, blocks + last // WIDE
    if left == right:
        _add_within(s, left, first % WIDE, last % WIDE, amount)
        _climb(s, left >> 1)
        return
    _add_within(s, left, first % WIDE, WIDE - 1, amount)
    _add_within(s, right, 0, last % WIDE, amount)
    while left ^ right ^ 1:
        if not left & 1:
            _add_below(s, left ^ 1, amount)
        if right & 1:
            _add_below(s, right ^ 1, amount)
        left >>= 1
        right >>= 1
        _gather(s, left)
        _gather(s, right)
    _climb(s, left >> 1)


@inner
def bump(s: Ints, slot: int, amount: int) -> None:
    """Add to one slot."""
    block = s[SLOTS] // WIDE + slot // WIDE
    _add_within(s, block, slot % WIDE, slot % WIDE, amount)
    _climb(s, block >> 1)


@inner
def _add_within(s: Ints, block: int, first: int, last: int, amount: int) -> None:
    """Add to some slots of one block."""
    held = s[HELD] + (block - s[SLOTS] // WIDE) * WIDE
    for slot in range(held + first, held + last + 1):
        s[slot] += amount
    _look(s, block)


@inner
def _look(s: Ints, block: int) -> None:
    held = s[HELD] + (block - s[SLOTS] // WIDE) * WIDE
    most = s[held]
    for slot in range(held + 1, held + WIDE):
        most = max(most, s[slot])
    place = s[TREE] + FIELDS * block
    s[place + MAXIMUM], s[place + KNOWN] = most + s[place + ADDED], 0


@inner
def _add_below(s: Ints, node: int, amount: int) -> None:
    """Add to all slots below a node: what it keeps was so with more above it."""
    place = s[TREE] + FIELDS * node
    s[place + MAXIMUM] += amount
    s[place + ADDED] += amount
    s[place + ABOVE] -= amount


@inner
def _gather(s: Ints, node: int) -> None:
    place, below = s[TREE] + FIELDS * node, s[TREE] + 2 * FIELDS * node
    s[place + MAXIMUM] = max(s[below + MAXIMUM], s[below + FIELDS + MAXIMUM]) + s[place + ADDED]
    s[place + KNOWN] = 0


@inner
def _climb(s: Ints, node: int) -> None:
    while node:
        _gather(s, node)
        node >>= 1


@inner
def grow(s: Ints) -> None:
    """The whole tree from its slots."""
    blocks = s[SLOTS] // WIDE
    for node in range(2 * blocks - 1, 0, -1):
        s[s[TREE] + FIELDS * node + ADDED] = 0
        if node < blocks:
            _gather(s, node)
        else:
            _look(s, node)


@inner
def clear(s: Ints) -> None:
    """No compute anywhere; `grow` is to follow."""
    for slot in range(s[SLOTS]):
        s[s[HELD] + slot] = -EMPTY


@inner
def excess(s: Ints) -> int:
    """The bytes over budget, summed over all computes, those above the roof many times."""
    blocks, asked, done, many = s[SLOTS] // WIDE, s[ASKED], 0, 0
    if not _answers(s, 1, 0):
        s[asked] = many = 1
    while done < many:  # parents stand before their children
        node = s[asked + done]
        done += 1
        if node >= blocks:
            _count(s, node)
            continue
        place = s[TREE] + FIELDS * node
        above = s[place + ABOVE] + s[place + ADDED]
        for below in range(2 * node, 2 * node + 2):
            if not _answers(s, below, above):
                s[asked + many] = below
                many += 1
    for place in range(many - 1, -1, -1):
        if s[asked + place] < blocks:
            _sum_up(s, s[asked + place])
    found: int = s[s[TREE] + FIELDS + OVER]
    return found


@inner
def _answers(s: Ints, node: int, above: int) -> bool:
    """Whether a node can say what it counts without asking those below it, so much being added above it."""
    place = s[TREE] + FIELDS * node
    more = above - s[place + ABOVE]
    known = s[place + KNOWN]
    s[place + ABOVE], s[place + KNOWN] = above, 1
    room = s[BUDGET] - s[place + MAXIMUM] - above
    if room >= 0:
        s[place + OVER], s[place + SLOPE], s[place + UP], s[place + DOWN] = 0, 0, room, _FAR
        return True
    if known and -s[place + DOWN] <= more <= s[place + UP]:
        s[place + OVER] += more * s[place + SLOPE]
        s[place + UP] -= more
        s[place + DOWN] += more
        return True
    return False


@inner
def _count(s: Ints, block: int) -> None:
    place = s[TREE] + FIELDS * block
    budget, roof = s[BUDGET], s[ROOF]
    above = s[place + ABOVE] + s[place + ADDED]
    held = s[HELD] + (block - s[SLOTS] // WIDE) * WIDE
    over, slope, up, down = 0, 0, _FAR, _FAR
    for slot in range(held, held + WIDE):
        memory = s[slot] + above
        if memory <= budget:
            up = min(up, budget - memory)
            continue
        over += memory - budget
        slope += 1
        down = min(down, memory - budget)
        if memory <= roof:
            up = min(up, roof - memory)
        else:
            over += _STEEP * (memory - roof)
            slope += _STEEP
            down = min(down, memory - roof)
    s[place + OVER], s[place + SLOPE], s[place + UP], s[place + DOWN] = over, slope, up, down


@inner
def _sum_up(s: Ints, node: int) -> None:
    place = s[TREE] + FIELDS * node
    one, other = s[TREE] + 2 * FIELDS * node, s[TREE] + 2 * FIELDS * node + FIELDS
    s[place + OVER] = s[one + OVER] + s[other + OVER]
    s[place + SLOPE] = s[one + SLOPE] + s[other + SLOPE]
    s[place + UP] = min(s[one + UP], s[other + UP])
    s[place + DOWN] = min(s[one + DOWN], s[other + DOWN])
