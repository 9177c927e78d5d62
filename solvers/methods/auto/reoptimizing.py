"""Stretches of an order computed anew by an exact search: cheaper in the best order, within the budget in one over it.

Invariant: no order is taken up twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.best import Best
from solvers.pebbles.mending import Mending
from solvers.pebbles.windows import Stretches
from solvers.problem import Limits


class Stretching(Operator):
    """Of the best order, where that has changed."""

    name, share = "stretches", 0.05

    def __init__(self, asked: SearchQuestion) -> None:
        super().__init__(asked, asked.moves)
        self.seen: tuple[int, int] | None = None

    def ready(self) -> bool:
        return self.asked.best.fitting is not None and self.asked.pool.worth != self.seen

    def begin(self) -> Step:
        asked, entry = self.asked, self.asked.pool.first
        self.seen = entry.worth

        def step(limits: Limits) -> list[Offer]:
            best = Best(asked.as_asked, asked.budget, limits)
            known = best.weigh(entry.steps)
            assert known is not None
            better = Stretches(asked.copies, best, asked.moves).improve(known)
            return [Offer(better.order, self.name, entry.origin)]

        return step

    def end(self, entries: Sequence[Contender | None]) -> None:
        for entry in entries:
            if entry is not None:
                self.seen = entry.worth


class Mend(Operator):
    """While nothing fits: of the order that lacks least of those not tried."""

    name, share = "mending", 0.05

    def __init__(self, asked: SearchQuestion) -> None:
        super().__init__(asked, asked.moves)
        self.tried: set[tuple[int, int]] = set()

    def _next(self) -> Contender | None:
        return next((entry for entry in self.asked.pool.entries if entry.worth not in self.tried), None)

    def ready(self) -> bool:
        return self.asked.best.fitting is None and self._next() is not None

    def begin(self) -> Step:
        asked, entry = self.asked, self._next()
        assert entry is not None
        self.tried.add(entry.worth)

        def step(limits: Limits) -> list[Offer]:
            mending = Mending(asked.copies, Best(asked.as_asked, asked.budget, limits), asked.moves)
            return [Offer(mending.run(entry.steps), self.name, entry.origin)]

        return step
