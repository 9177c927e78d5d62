"""Orders of first computes that others are made from: walks along one, and one of low peak.

Invariant: what comes of an order depends on it, on numbers and on the seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.clock import WALKED_MOVES, Clock
from solvers.methods.auto.question import SearchQuestion
from solvers.orders import evict
from solvers.orders.arrays import Ints
from solvers.orders.evict import Evictor, Rule
from solvers.problem import Limits, Problem
from solvers.reductions.first_computes import in_order_of, lazy_orders

_WALKS, _WALKED = 9, 200_000  # walks along an order, and how many nodes they may cover together, but for one


def some_rules(nodes: int) -> tuple[Rule, ...]:
    """Those by which one order is walked along."""
    return evict.some_rules(nodes, _WALKED)[:_WALKS]


def reorder(local: LocalSearch, order: Sequence[int], number: int, moves: int, clock: Clock) -> list[int]:
    """An order of first computes of a low peak."""
    found: list[int] = local.go(np.array(order, np.int64), number, moves, clock, Kept.REPEATS).order.tolist()
    return found


class WalksAlong:
    """One order to walk along. `origin`: of all that comes of it."""

    def __init__(self, problem: Problem, order: Sequence[int], origin: int) -> None:
        self.origin = origin
        self.way = in_order_of(problem, order)
        self.evictor = Evictor(self.way.problem)

    def walk(self, budget: int, rule: Rule, limits: Limits) -> Ints:
        walked = self.evictor.run(budget, rule, limits.seed, clock=limits.clock)
        return np.array(self.way.expand(walked.tolist()), np.int64)


class Afresh:
    """Orders whose order of first computes is new: they may be good in another way than all that are known."""

    def __init__(self, asked: SearchQuestion, local: LocalSearch) -> None:
        self.asked, self.local = asked, local
        self.rules = some_rules(len(asked.given))
        self.work = asked.moves // 2 + len(self.rules) * WALKED_MOVES * len(local.arrays.reads)  # of one, about

    @cached_property
    def begins(self) -> tuple[Sequence[int], ...]:
        return self.asked.given, lazy_orders(self.asked.problem)[0]

    def order(self, number: int) -> Ints:
        """What comes of the best walk, whether it fits or not."""
        asked = self.asked
        first = reorder(self.local, self.begins[number % 2], number, asked.moves // 2, asked.limits.clock)
        along, limits = WalksAlong(asked.problem, first, 0), asked.aside()
        orders = (np.array(first, np.int64), *(along.walk(asked.budget, rule, limits) for rule in self.rules))
        known = [one for one in map(asked.best.weigh, orders) if one is not None]
        return min(known, key=lambda one: (max(0, one.peak - asked.budget), one.cost)).order
