"""Places of an order that take more than the budget, mended: what is around them is computed anew, exactly within it.

A copy held across such a place may be let go for a while and made again from whatever is at hand; the search backwards
finds with what computes. It goes for any way that fits rather than for the cheapest, which keeps it short.

Invariant: an order given back computes every node and has fewer bytes over the budget, summed over its computes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers._loops import cheapest
from solvers.orders.arrays import Ints
from solvers.orders.best import Best, Weighed
from solvers.orders.halting import halting
from solvers.orders.measure import memory_of
from solvers.pebbles.copies import Copies
from solvers.pebbles.windows import at_hand

_WIDTHS = (8, 24)  # computes around a place
_BEFORE = (0.5, 0.9, 0.1)  # the part of them that comes before it
_STATES = (50, 400, 3_200)  # of a search, from round to round
_HASTE = 3  # what is still to be computed counts so many times
_LARGE = 0.004  # of the budget: a copy that may be let go though the stretch does not make it
_WITHOUT = 40  # places in a row that cannot be mended, before the next round
_DEAREST = 1 << 60


class Mending:
    """`most`: moves' worth of work of all searches together."""

    def __init__(self, copies: Copies, best: Best, most: int) -> None:
        self.copies = copies
        self.best = best
        self.left = most
        tables = copies.tables
        self.large = tables.problem.size[tables.value] >= _LARGE * best.budget

    def run(self, order: Ints) -> Ints:
        """The order with as many of its places mended as can be, those that are easy to mend first."""
        known = self.best.weigh(order)
        if known is None:
            return order
        with halting(self.best.limits.clock) as halt:
            for states in _STATES:
                before = None
                while known is not before and known.peak > self.best.budget and not self.over():
                    before, known = known, self.sweep(known, states, halt)
        return known.order

    def over(self) -> bool:
        return self.left <= 0 or self.best.over()

    def sweep(self, known: Weighed, states: int, halt: Ints) -> Weighed:
        """Once from the beginning of the order to its end."""
        after, without = 0, 0
        while without < _WITHOUT and not self.over():
            places = after + np.flatnonzero(self.excess(known.order)[after:])
            if not len(places):
                return known
            place = int(places[0])
            mended = self.mend(known, place, states, halt)
            if mended is None:
                after, without = place + 1, without + 1
            else:
                known, without = mended, 0
        return known

    def excess(self, order: Ints) -> Ints:
        """The bytes over the budget at each compute."""
        return np.maximum(memory_of(self.best.arrays, order) - self.best.budget, 0)

    def mend(self, known: Weighed, place: int, states: int, halt: Ints) -> Weighed | None:
        excess = self.excess(known.order)
        for begin, end in _stretches(excess, place):
            found = self.anew(known.order, (begin, end), states, halt)
            if found is not None and self.excess(found.order).sum() < excess.sum():
                return found
            if self.over():
                break
        return None

    def anew(self, order: Ints, stretch: tuple[int, int], states: int, halt: Ints) -> Weighed | None:
        tables, (begin, end) = self.copies.tables, stretch
        given, wanted = at_hand(self.copies, order, begin), at_hand(self.copies, order, end)
        nodes = np.concatenate([order[begin:end], tables.writer[given[self.large[given]]]])
        budget = self.best.budget
        _, cost, looked_at, way = cheapest(tables, wanted, given, nodes, budget, _DEAREST, states, _HASTE, halt)
        self.left -= self.best.limits.clock.spend(states=looked_at, looks=len(order))
        if cost < 0:
            return None
        found = self.best.weigh(np.concatenate([order[:begin], way, order[end:]]))
        whole = found is not None and len(np.unique(found.order)) == len(tables.problem.cost)
        return found if whole else None


def _stretches(excess: Ints, place: int) -> Iterator[tuple[int, int]]:
    """Stretches around a place, the smaller ones first, each widened to where the next compute takes no more than the
    budget."""
    seen = set[tuple[int, int]]()
    for width in _WIDTHS:
        for part in _BEFORE:
            begin = max(0, place - int(width * part))
            end = min(len(excess), begin + width)
            while end < len(excess) and excess[end]:
                end += 1
            if (begin, end) not in seen:
                seen.add((begin, end))
                yield begin, end
