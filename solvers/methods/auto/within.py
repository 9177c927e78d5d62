"""The exact search within one order of first computes, a round at a time.

Invariant: whatever it finds is offered to the best of the search over all orders, in the numbers of its problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from solvers.methods.exact.milp import Hunt
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.evict import RULES
from solvers.problem import Problem, Progress
from solvers.reductions.reorder import in_order_of

NAME = "within one order"
_LARGE_NODES = 500  # from here on fewer ways to evict are tried
_FEW_RULES = 9


class HuntWithin:
    """One hunt. `best`: of the search over all orders; `walked`: orders that eviction walks have found."""

    def __init__(self, problem: Problem, first: tuple[int, ...], best: Best, walked: Sequence[tuple[int, ...]]) -> None:
        self.first = first
        self.best = best
        self.walked = walked
        self.way = in_order_of(problem, first)
        self.hunt = Hunt(self.way.problem, best.budget, replace(best.limits, report=self._hear))
        self.rounds: Iterator[None] | None = None
        self.count = 0
        self.over = False

    def _hear(self, progress: Progress) -> None:
        if progress.order is not None:
            self.best.offer(self.way.expand(progress.order), NAME)

    def go(self) -> None:
        """One round, or what comes before the first."""
        self.hunt.rival = self.best.cost
        if self.rounds is None:
            self._begin()
            self.rounds = self.hunt.rounds()
        self.count += 1
        before = self.hunt.seconds
        with self.best.ledger.at_work(NAME):
            self.over = self.hunt.done() or next(self.rounds, self) is self
        self.best.ledger.spent(NAME, self.hunt.seconds - before)

    def _begin(self) -> None:
        known = self.best.fitting
        if known is None:
            self.hunt.begin()
            return
        for order in (self.first, known.steps(), *self.walked):
            self.hunt.best.offer(self.way.shrink(order), known.by)
        if len(self.first) > _LARGE_NODES:
            self.hunt.improver.rules = list(RULES[:_FEW_RULES])


def list_first_computes(order: Ints) -> tuple[int, ...]:
    """The order of first computes."""
    _, place = np.unique(order, return_index=True)
    return tuple(order[np.sort(place)].tolist())
