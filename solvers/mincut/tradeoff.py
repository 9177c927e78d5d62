"""Bytes saved against time to rebuild: every cut on the lower convex hull of the two, by a parametric minimum cut.

For a price of a byte, the least of price * bytes saved + time to rebuild the rest is a minimum cut: an op computed
again cuts its arc from the source (its time), a value saved cuts its own arc (its bytes). Invariant: what may run only
once is never rebuilt; the sweep does not know the budget, so that a larger budget only ever has more to choose from.
"""

from __future__ import annotations

from math import gcd

from solvers.mincut.flow import INFINITE, minimum_cut
from solvers.problem import Problem

ROOM = 1 << 60  # the sum of all finite capacities stays below


class Tradeoff:
    """The network of a problem: vertices for each value (needed, rebuilt) and each forward op."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.values = sorted(v for node in problem.nodes if not node.backward for v in node.writes)
        writer = problem.writers()
        self.needed = {
            value
            for node in problem.nodes
            if node.backward
            for value in node.reads
            if not problem.nodes[writer[value]].backward
        }
        self.free = {v for v in problem.outputs if not problem.nodes[writer[v]].backward}  # held in any case

    def hull(self, most: int = 200) -> list[frozenset[int]]:
        """Sets of saved values, from everything that is needed to as little as can be."""
        first, last = self.saved(0, 1), self.saved(1, 0)
        found = {self._figures(first): first, self._figures(last): last}
        waiting = [(self._figures(first), self._figures(last))]
        while waiting and len(found) < most:
            (large, fast), (small, slow) = waiting.pop(0)
            if large <= small or slow <= fast:
                continue
            between = self.saved(slow - fast, large - small)
            figures = self._figures(between)
            if figures not in found:
                found[figures] = between
                waiting += [((large, fast), figures), (figures, (small, slow))]
        return [found[figures] for figures in sorted(found, reverse=True)]

    def saved(self, byte: int, nanosecond: int) -> frozenset[int]:
        """The best set at these prices. At a price of nothing, ties go to what the other price says."""
        byte, nanosecond = self._scaled(byte, nanosecond)
        count = 2 * len(self.problem.sizes) + len(self.problem.nodes)
        source, sink, ops = count, count + 1, 2 * len(self.problem.sizes)
        arcs: list[tuple[int, int, int]] = []
        for index, node in enumerate(self.problem.nodes):
            if node.backward:
                continue
            arcs.append((source, ops + index, INFINITE if node.once else node.cost * nanosecond + 1))
            arcs += [(2 * value + 1, ops + index, INFINITE) for value in node.reads]
            arcs += [(ops + index, 2 * value, INFINITE) for value in node.writes]
        for value in self.values:
            price = 0 if value in self.free else self.problem.sizes[value] * byte + 1
            arcs.append((2 * value, 2 * value + 1, price))
        arcs += [(2 * value + 1, sink, INFINITE) for value in sorted(self.needed)]
        near = minimum_cut(count + 2, arcs, source, sink).near
        return frozenset(v for v in self.values if near[2 * v] and not near[2 * v + 1])

    def _scaled(self, byte: int, nanosecond: int) -> tuple[int, int]:
        """The two prices in the same ratio, or nearly, and so small that no sum overflows."""
        common = gcd(byte, nanosecond) or 1
        byte, nanosecond = byte // common, nanosecond // common
        total = sum(self.problem.sizes) * byte + sum(node.cost for node in self.problem.nodes) * nanosecond
        while total > ROOM:
            byte, nanosecond, total = max(byte // 2, min(byte, 1)), max(nanosecond // 2, min(nanosecond, 1)), total // 2
        return byte, nanosecond

    def _figures(self, saved: frozenset[int]) -> tuple[int, int]:
        """Bytes saved, and the time to rebuild all else that the backward pass needs."""
        writer = self.problem.writers()
        there = saved | self.free
        rebuilt: set[int] = set()
        waiting = [value for value in self.needed if value not in there]
        while waiting:
            index = writer[waiting.pop()]
            if index not in rebuilt:
                rebuilt.add(index)
                waiting += [value for value in self.problem.nodes[index].reads if value not in there]
        held = sum(self.problem.sizes[value] for value in saved if value not in self.free)
        return held, sum(self.problem.nodes[index].cost for index in rebuilt)
