"""While nothing fits: walks that aim low, and the search for the least peak, longer each time; an order of low enough
peak is a plan, and a bound above the budget proves that there is none.

Invariant: work limits a step, never seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.methods.exact.low_walks import lowest
from solvers.orders.best import Best, Weighed
from solvers.orders.evict import RULES
from solvers.pebbles.floor import dig
from solvers.problem import Limits

_FIRST, _LONGER = 4, 4  # usual goes that the first step takes, and times as long that steps then become
_QUICK = 4  # usual goes' part that the first step is taken to need: it is often that quick
_ABOVE = 1.1  # so far above the budget ways are sought whose orders may need less than the ways promise
_RULES = RULES[:9]


class LeastPeak(Operator):
    """Walks, then ways within the budget, then ways as low as can be, and so on with more work."""

    name, share = "least peak", 0.3

    def __init__(self, asked: SearchQuestion) -> None:
        super().__init__(asked, asked.moves // _QUICK)
        self.most: int = _FIRST * asked.moves
        self.steps = (self.walk, self.dig, self.lean)
        self.turn = 0
        self.over = False

    def ready(self) -> bool:
        return self.asked.best.fitting is None and self.asked.best.leanest is not None and not self.over

    def begin(self) -> Step:
        known = self.asked.best.leanest
        assert known is not None
        step = self.steps[self.turn % len(self.steps)]

        def run(limits: Limits) -> list[Offer]:
            best = step(known, limits)
            found = [one for one in (best.leanest, best.fitting) if one is not None and one is not known]
            return [Offer(one.order, one.by) for one in found]

        return run

    def end(self, entries: Sequence[Contender | None]) -> None:
        self.turn += 1
        if self.turn % len(self.steps) == 0:
            self.over = self.work < self.most
            self.most *= _LONGER

    def walk(self, known: Weighed, limits: Limits) -> Best:
        return lowest(self.asked.problem, limits, _RULES, enough=self.asked.budget)

    def dig(self, known: Weighed, limits: Limits) -> Best:
        return self._dig(self.asked.budget, min(known.peak, int(self.asked.budget * _ABOVE) + 1), known, limits)

    def lean(self, known: Weighed, limits: Limits) -> Best:
        return self._dig(-1, known.peak, known, limits)

    def _dig(self, budget: int, peak: int, known: Weighed, limits: Limits) -> Best:
        best = Best(self.asked.as_asked, budget, limits)
        best.offer(known.order, known.by)
        self.asked.raise_least(dig(best, peak, limits))
        return best
