"""Eviction walks along orders of first computes.

Invariant: each order is walked along once, by the same rules, and is the origin of whatever comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np

from solvers.annealing.local import LocalSearch
from solvers.clock import WALKED_MOVES
from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.origins import WalksAlong, reorder, some_rules
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.evict import Rule
from solvers.orders.wide_last import orders_with_wide_last
from solvers.reductions.first_computes import lazy_orders

_WIDE_LAST = 3  # orders in which what takes most room comes last
_REORDERED = 100  # nodes from which on a search for an order alone is worth its time
GIVEN, LAZY, REORDERED, WIDE_LAST = "the order given", "lazy orders", "reordering", "wide ops last"


class EvictionWalks(Operator):
    """Each step is one walk, first one along each order, so that there is a plan as soon as can be."""

    name, share = "walks", 0.6  # they take little

    def __init__(self, asked: SearchQuestion) -> None:
        reads = sum(len(node.reads) for node in asked.problem.nodes)
        super().__init__(asked, WALKED_MOVES * (len(asked.given) + reads))
        self.walks = self._walks()
        self.next: tuple[WalksAlong, Rule] | None = next(self.walks)

    def _walks(self) -> Iterator[tuple[WalksAlong, Rule]]:
        asked = self.asked
        first, *others = some_rules(len(asked.given))
        ways: list[WalksAlong] = []
        for order, by in self._orders():
            ways.append(WalksAlong(asked.problem, order, asked.pool.new_origin()))
            asked.pool.offer(np.array(order, np.int64), by, ways[-1].origin)
            yield ways[-1], first
        yield from product(ways, others)

    def _orders(self) -> Iterator[tuple[Sequence[int], str]]:
        asked = self.asked
        yield asked.given, GIVEN
        lazy = lazy_orders(asked.problem)
        for order in lazy:
            yield order, LAZY
        if len(asked.given) >= _REORDERED:
            local = LocalSearch(asked.problem, asked.budget, asked.limits.seed)
            asked.limits.clock.spend(moves=asked.moves // 2)
            yield reorder(local, lazy[0], 0, asked.moves // 2, asked.limits.clock), REORDERED
        for order in islice(orders_with_wide_last(asked.problem, asked.budget), _WIDE_LAST):
            yield order, WIDE_LAST

    def ready(self) -> bool:
        return self.next is not None

    def begin(self) -> Step:
        assert self.next is not None
        along, rule = self.next
        return lambda limits: [Offer(along.walk(self.asked.budget, rule, limits), self.name, along.origin)]

    def end(self, entries: Sequence[Contender | None]) -> None:
        self.asked.walked += [tuple(entry.steps.tolist()) for entry in entries if entry is not None]
        self.next = None if self.asked.done() else next(self.walks, None)
