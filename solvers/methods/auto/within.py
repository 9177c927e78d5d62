"""The exact search within one order of first computes: the best order's, the one given, and others met before.

Invariant: whatever it finds is offered to the pool, in the numbers of its problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.clock import Clock
from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.question import SearchQuestion
from solvers.methods.exact.improve import MOVES
from solvers.methods.exact.milp import Hunt
from solvers.orders.arrays import Ints
from solvers.orders.best import Weighed
from solvers.problem import Limits, Progress
from solvers.reductions.first_computes import in_order_of

NAME = "within one order"
_KEPT = 6  # hunts
_OTHERS = 2  # rounds within the best schedule's order for each of another
_READ_MOVES = 1_000  # of the first round, for each read of a node


class HuntWithin:
    """One hunt, a round at a time."""

    def __init__(self, asked: SearchQuestion, first: tuple[int, ...]) -> None:
        self.asked, self.first = asked, first
        self.way = in_order_of(asked.problem, first)
        self.limits = asked.aside()
        self.hunt = Hunt(self.way.problem, asked.budget, replace(self.limits, report=self._hear))
        self.rounds: Iterator[None] | None = None
        self.found: list[tuple[int, ...]] = []
        self.count = 0
        self.over = False

    def _hear(self, progress: Progress) -> None:
        if progress.order is not None:
            self.found.append(self.way.expand(progress.order))

    def go(self, known: Weighed, walked: list[tuple[int, ...]], clock: Clock) -> None:
        """One round, whose work counts on this clock."""
        hunt, self.limits.clock.work.whole = self.hunt, clock.work
        tries, seconds = hunt.improver.turn.spent, hunt.seconds
        hunt.rival = known.cost
        if self.rounds is None:
            for order in (self.first, known.steps(), *walked):
                hunt.best.offer(self.way.shrink(order), known.by)
            self.rounds = hunt.rounds()
        self.count += 1
        self.over = hunt.done() or next(self.rounds, self) is self
        self.asked.best.ledger.spent(NAME, hunt.seconds - seconds)
        clock.spend(moves=MOVES * (hunt.improver.turn.spent - tries))


class Within(Operator):
    name, share = NAME, 0.1

    def __init__(self, asked: SearchQuestion) -> None:
        super().__init__(asked, _READ_MOVES * sum(len(node.reads) for node in asked.problem.nodes))
        self.hunts: list[HuntWithin] = []

    def own(self) -> tuple[int, ...]:
        known = self.asked.best.fitting
        return self.asked.given if known is None else list_first_computes(known.order)

    def ready(self) -> bool:
        if self.asked.best.fitting is None:
            return False
        own = self.own()
        return any(not hunt.over for hunt in self.hunts) or all(hunt.first != own for hunt in self.hunts)

    def begin(self) -> Step:
        asked, own, known = self.asked, self.own(), self.asked.best.fitting
        assert known is not None
        for first in (own, asked.given):
            if all(hunt.first != first for hunt in self.hunts):
                self.hunts.append(HuntWithin(asked, first))
        ended = [hunt for hunt in self.hunts if hunt.over]
        going = [hunt for hunt in self.hunts if not hunt.over][-_KEPT:]
        self.hunts = [*ended, *going]
        chosen = min(going, key=lambda hunt: hunt.count if hunt.first == own else _OTHERS * hunt.count)

        def step(limits: Limits) -> list[Offer]:
            chosen.go(known, asked.walked, limits.clock)
            found = [Offer(np.array(order, np.int64), self.name) for order in chosen.found]
            chosen.found.clear()
            return found

        return step


def list_first_computes(order: Ints) -> tuple[int, ...]:
    """The order of first computes."""
    _, place = np.unique(order, return_index=True)
    return tuple(order[np.sort(place)].tolist())
