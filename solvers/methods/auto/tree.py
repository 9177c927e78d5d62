"""The memory in use at every slot of an order, as a tree of maxima: add to a range, ask for the bytes over budget.

Invariant: a leaf without a compute is so far below zero that it never counts; `s[TREE] + 1` is the root.
"""

from __future__ import annotations

from solvers.methods.auto.layout import BUDGET, EMPTY, GAP, LAZY, ROOF, SLOTS, STACK, TREE
from solvers.orders.arrays import Ints
from solvers.orders.compiled import inner

_BLOCKS = 1 << 14  # that are looked at one by one
_STEEP = 100  # what a byte above the roof counts besides


@inner
def add(s: Ints, first: int, last: int, amount: int) -> None:
    """Add to the slots `first` to `last`, both included; slot 0 and the last slot are never among them."""
    tree, lazy = s[TREE], s[LAZY]
    left, right = s[SLOTS] + first - 1, s[SLOTS] + last + 1
    while left ^ right ^ 1:
        if not left & 1:
            s[tree + (left ^ 1)] += amount
            s[lazy + (left ^ 1)] += amount
        if right & 1:
            s[tree + (right ^ 1)] += amount
            s[lazy + (right ^ 1)] += amount
        left >>= 1
        right >>= 1
        s[tree + left] = max(s[tree + 2 * left], s[tree + 2 * left + 1]) + s[lazy + left]
        s[tree + right] = max(s[tree + 2 * right], s[tree + 2 * right + 1]) + s[lazy + right]
    _pull(s, left >> 1)


@inner
def bump(s: Ints, slot: int, amount: int) -> None:
    """Add to one slot."""
    leaf = s[SLOTS] + slot
    s[s[TREE] + leaf] += amount
    _pull(s, leaf >> 1)


@inner
def _pull(s: Ints, node: int) -> None:
    tree, lazy = s[TREE], s[LAZY]
    while node:
        most = max(s[tree + 2 * node], s[tree + 2 * node + 1]) + s[lazy + node]
        if most == s[tree + node]:
            return
        s[tree + node] = most
        node >>= 1


@inner
def grow(s: Ints) -> None:
    """The whole tree from its leaves."""
    tree, lazy, slots = s[TREE], s[LAZY], s[SLOTS]
    for node in range(2 * slots):
        s[lazy + node] = 0
    for node in range(slots - 1, 0, -1):
        s[tree + node] = max(s[tree + 2 * node], s[tree + 2 * node + 1])


@inner
def clear(s: Ints) -> None:
    for slot in range(s[SLOTS]):
        s[s[TREE] + s[SLOTS] + slot] = -EMPTY


@inner
def excess(s: Ints) -> int:
    """The bytes over budget, summed over all computes, those above the roof many times; no work where nothing is over.

    On large graphs over blocks of computes, the most of each for all in it: a move never looks at every compute.
    """
    tree, lazy, slots, budget, stack = s[TREE], s[LAZY], s[SLOTS], s[BUDGET], s[STACK]
    if s[tree + 1] <= budget:
        return 0
    leaves, above = min(slots, _BLOCKS), s[ROOF] - budget
    total = 0
    s[stack], s[stack + 1] = 1, 0
    top = 2
    while top:
        top -= 2
        node, carried = s[stack + top], s[stack + top + 1]
        over = s[tree + node] + carried - budget
        if over <= 0:
            continue
        if node >= leaves:
            total += over + _STEEP * max(0, over - above)
            continue
        carried += s[lazy + node]
        s[stack + top], s[stack + top + 1] = 2 * node, carried
        s[stack + top + 2], s[stack + top + 3] = 2 * node + 1, carried
        top += 4
    return total * max(1, slots // leaves // GAP)
