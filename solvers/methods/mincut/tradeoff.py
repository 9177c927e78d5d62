"""Bytes saved against time to rebuild: every cut on the lower convex hull of the two, by a parametric minimum cut.

For a price of a byte, the least of price * bytes saved + time to rebuild the rest is a minimum cut: an op computed
again cuts its arc from the source (its time), a value saved cuts its own arc (its bytes). Invariant: what may run only
once is never rebuilt; the sweep does not know the budget, so that a larger budget only ever has more to choose from.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from solvers.methods.mincut.flow import INFINITE, minimum_cut
from solvers.problem import Problem

ROOM = 1 << 60  # the sum of all finite capacities stays below
Prices = tuple[int, int]  # of a byte, of a nanosecond


class Tradeoff:
    """The network of a problem: two vertices for each value (needed, rebuilt) and one for each forward op."""

    def __init__(self, problem: Problem, sizes: Sequence[int] | None = None) -> None:
        """`sizes`: what saving each value is reckoned to take, where that is not its bytes."""
        self.problem = problem
        self.sizes = problem.sizes if sizes is None else tuple(sizes)
        self.writer = problem.writers()
        forward = [not node.backward for node in problem.nodes]
        self.values = sorted(v for node in problem.nodes if not node.backward for v in node.writes)
        read_back = {v for node in problem.nodes if node.backward for v in node.reads}
        self.needed = {value for value in read_back if forward[self.writer[value]]}
        self.free = {v for v in problem.outputs if forward[self.writer[v]]}  # held in any case
        self.source = 2 * len(problem.sizes) + len(problem.nodes)
        self.arcs, self.fixed = self._arcs()

    def _arcs(self) -> tuple[NDArray[np.int64], int]:
        """First the ops' arcs, then the values', then those that nothing can cut; how many the first two are."""
        ops, source, sink = 2 * len(self.problem.sizes), self.source, self.source + 1
        forward = [i for i, node in enumerate(self.problem.nodes) if not node.backward]
        arcs = [(source, ops + i) for i in forward]
        arcs += [(2 * value, 2 * value + 1) for value in self.values]
        priced = len(arcs)
        for i in forward:
            arcs += [(2 * value + 1, ops + i) for value in self.problem.nodes[i].reads]
            arcs += [(ops + i, 2 * value) for value in self.problem.nodes[i].writes]
        arcs += [(2 * value + 1, sink) for value in sorted(self.needed)]
        return np.array([(tail, head, INFINITE) for tail, head in arcs], np.int64).reshape(-1, 3), priced

    def hull(self, most: int = 100) -> list[frozenset[int]]:
        """Sets of saved values, from everything that is needed to as little as can be."""
        first, last = self.saved((0, 1)), self.saved((1, 0))
        found = {self._figures(first): first, self._figures(last): last}
        waiting = [(self._figures(first), self._figures(last))]
        while waiting and len(found) < most:
            (large, fast), (small, slow) = waiting.pop(0)
            if large <= small or slow <= fast:
                continue
            between = self.saved((slow - fast, large - small))
            figures = self._figures(between)
            if figures not in found:
                found[figures] = between
                waiting += [((large, fast), figures), (figures, (small, slow))]
        return [found[figures] for figures in sorted(found, reverse=True)]

    def saved(self, prices: Prices) -> frozenset[int]:
        """The best set at these prices. At a price of nothing, ties go to what the other price says."""
        byte, nanosecond = self._scaled(prices)
        forward = [node for node in self.problem.nodes if not node.backward]
        again = [INFINITE if node.once else node.cost * nanosecond + 1 for node in forward]
        kept = [0 if value in self.free else self.sizes[value] * byte + 1 for value in self.values]
        arcs = self.arcs.copy()
        arcs[: self.fixed, 2] = again + kept
        near = minimum_cut(self.source + 2, arcs, self.source, self.source + 1).near
        return frozenset(v for v in self.values if near[2 * v] and not near[2 * v + 1])

    def _scaled(self, prices: Prices) -> Prices:
        """The two prices in the same ratio, or nearly, and so small that no sum overflows."""
        byte, nanosecond = (price // (gcd(*prices) or 1) for price in prices)
        total = sum(self.sizes) * byte + sum(node.cost for node in self.problem.nodes) * nanosecond
        while total > ROOM:
            byte, nanosecond, total = max(byte // 2, min(byte, 1)), max(nanosecond // 2, min(nanosecond, 1)), total // 2
        return byte, nanosecond

    def _figures(self, saved: frozenset[int]) -> tuple[int, int]:
        """Bytes saved, and the time to rebuild all else that the backward pass needs."""
        there = saved | self.free
        rebuilt = self.problem.makers(self.needed, there, self.writer)
        held = sum(self.sizes[value] for value in saved if value not in self.free)
        return held, sum(self.problem.nodes[index].cost for index in rebuilt)
