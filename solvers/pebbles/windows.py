"""Stretches of an order computed anew at the least cost, from the copies at hand before to those wanted afterwards.

Invariant: the order given back costs no more than the one given, and needs no more than the budget if that did not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers._loops import cheapest
from solvers.orders.arrays import Ints
from solvers.orders.best import Best, Weighed
from solvers.orders.halting import halting
from solvers.pebbles.copies import Copies

_WIDTHS = (16, 32, 64)  # computes in a stretch
_STATES = 2_000  # of a search


class Stretches:
    """`most`: moves' worth of work of all searches together."""

    def __init__(self, copies: Copies, best: Best, most: int) -> None:
        self.copies = copies
        self.best = best
        self.left = most
        self.done: set[tuple[bytes, bytes, int]] = set()  # stretches that are as cheap as they can be

    def improve(self, known: Weighed) -> Weighed:
        """Over and over, until no stretch becomes cheaper."""
        with halting(self.best.limits.clock) as halt:
            before = None
            while known is not before and not self.over():
                before = known
                for width in _WIDTHS:
                    known = self.sweep(known, width, halt)
        return known

    def over(self) -> bool:
        return self.left <= 0 or self.best.over()

    def sweep(self, known: Weighed, width: int, halt: Ints) -> Weighed:
        """Every stretch of that width in which something is computed again, from the end to the beginning."""
        end = len(known.order)
        while end > 0 and not self.over():
            begin = max(0, end - width)
            if _again(known.order)[begin:end].any():
                known = self.anew(known, begin, end, halt)
            end -= width // 2
        return known

    def anew(self, known: Weighed, begin: int, end: int, halt: Ints) -> Weighed:
        tables, order = self.copies.tables, known.order
        given, wanted = at_hand(self.copies, order, begin), at_hand(self.copies, order, end)
        spent = int(tables.problem.cost[order[begin:end]].sum())
        key = given.tobytes(), wanted.tobytes(), spent
        if key in self.done:
            return known
        self.done.add(key)
        budget = max(self.best.budget, known.peak)
        _, cost, states, way = cheapest(tables, wanted, given, order[begin:end], budget, spent, _STATES, 1, halt)
        self.left -= self.best.limits.clock.spend(states=states, looks=len(order))
        if cost < 0:
            return known
        found = self.best.weigh(np.concatenate([order[:begin], way, order[end:]]))
        if found is None or len(np.unique(found.order)) < len(tables.problem.cost) or found.peak > budget:
            return known
        return found if found.cost < known.cost else known


def _again(order: Ints) -> NDArray[np.bool_]:
    """Which computes are not their node's first."""
    again = np.ones(len(order), np.bool_)
    again[np.unique(order, return_index=True)[1]] = False
    return again


def at_hand(copies: Copies, order: Ints, place: int) -> Ints:
    """The copies in memory before the compute at that place: those made before it that are read there or later."""
    tables = copies.tables
    arrays, (before, after) = tables.problem, (order[:place], order[place:])
    made = np.zeros(len(arrays.size), np.bool_)
    made[_of(arrays.writes_at, arrays.writes, before)[0]] = True
    first_read, first_made = (
        _first(*_of(starts, items, after), len(made), len(order))
        for starts, items in ((arrays.reads_at, arrays.reads), (arrays.writes_at, arrays.writes))
    )
    last = arrays.output & made & (first_made == len(order)) & (tables.last_bit >= 0)
    ordinary = made & (first_read < first_made) & ~last & (tables.ordinary_bit >= 0)
    return np.sort(np.concatenate([tables.ordinary_bit[ordinary], tables.last_bit[last]]))


def _of(starts: Ints, items: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """What the rows of these nodes name, and in which step."""
    counts = starts[nodes + 1] - starts[nodes]
    steps = np.repeat(np.arange(len(nodes)), counts)
    within = np.arange(len(steps)) - np.repeat(np.cumsum(counts) - counts, counts)
    return items[starts[nodes][steps] + within], steps


def _first(values: Ints, steps: Ints, count: int, never: int) -> Ints:
    """The first step that names each value."""
    found = np.full(count, never, np.int64)
    found[values[::-1]] = steps[::-1]
    return found
