"""Eviction walks along orders of first computes.

Invariant: each order is walked along once, by the same rules, and is the origin of whatever comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.clock import LOOK_MOVES
from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.arrays import Ints
from solvers.orders.evict import Evictor, some_rules
from solvers.orders.wide_last import orders_with_wide_last
from solvers.problem import Limits
from solvers.reductions.first_computes import in_order_of, lazy_orders

_WALKS, _WALKED = 9, 200_000  # walks along an order, and how many nodes they may cover together, but for one
_WIDE_LAST = 3  # orders in which what takes most room comes last
_REORDERED = 100  # nodes from which on a search for an order alone is worth its time
GIVEN, LAZY, REORDERED, WIDE_LAST = "the order given", "lazy orders", "reordering", "wide ops last"


class EvictionWalks(Operator):
    name, share = "walks", 0.6  # they take little

    def __init__(self, asked: SearchQuestion) -> None:
        self.rules = some_rules(len(asked.given), _WALKED)[:_WALKS]
        reads = sum(len(node.reads) for node in asked.problem.nodes)
        super().__init__(asked, LOOK_MOVES * (len(asked.given) + reads) * len(self.rules))
        self.orders = self._orders()
        self.next = next(self.orders, None)

    def _orders(self) -> Iterator[tuple[Sequence[int], str]]:
        asked = self.asked
        lazy = lazy_orders(asked.problem)
        yield asked.given, GIVEN
        if len(asked.given) >= _REORDERED:
            yield self._reordered(lazy[0]), REORDERED
        for order in lazy:
            yield order, LAZY
        for order in islice(orders_with_wide_last(asked.problem, asked.budget), _WIDE_LAST):
            yield order, WIDE_LAST

    def _reordered(self, order: Sequence[int]) -> list[int]:
        """An order of first computes of a low peak."""
        asked, start = self.asked, np.array(order, np.int64)
        local = LocalSearch(asked.problem, asked.budget, asked.limits.seed)
        asked.limits.clock.spend(moves=asked.moves // 2)
        found: list[int] = local.go(start, 0, asked.moves // 2, asked.limits.clock, Kept.REPEATS).order.tolist()
        return found

    def ready(self) -> bool:
        return self.next is not None

    def begin(self) -> Step:
        assert self.next is not None
        order, by = self.next
        origin = self.asked.pool.new_origin()
        first = Offer(np.array(order, np.int64), by, origin)
        return lambda limits: [first, *(Offer(walked, self.name, origin) for walked in self.walk(order, limits))]

    def walk(self, order: Sequence[int], limits: Limits) -> Iterator[Ints]:
        way = in_order_of(self.asked.problem, order)
        evictor = Evictor(way.problem, limits.clock)
        for rule in self.rules:
            if not limits.clock.over():
                walked = evictor.run(self.asked.budget, rule, limits.seed)
                yield np.array(way.expand(walked.tolist()), np.int64)

    def end(self, entries: Sequence[Contender | None]) -> None:
        self.asked.walked += [tuple(entry.steps.tolist()) for entry in entries[1:] if entry is not None]
        self.next = None if self.asked.done() else next(self.orders, None)
