"""The best order is made to fit where it is to run, while the search for better ones goes on.

Invariant: what it costs by itself never keeps an order from the pool; a far cheaper order that comes meanwhile is tried
instead, unless places are known for the one that is tried. The one tried last is tried again, where that was in vain,
when the search has gone on for twice as long.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from solvers.clock import WRITTEN_MOVES, Clock
from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.best import Weighed
from solvers.problem import Limits

_FAR_CHEAPER = 0.5  # of what the order that is tried costs beyond each node once: giving up halves what is to be gained
_FIRST, _LATER = 4.0, 0.5  # shares, until an order fits and from then on
_PER_NODE = 1_000  # moves that one order may take, at least; later ones as many as the search took before
_AGAIN = 2  # times the moves that it might take before: an order is tried again with as many


class Fitting(Operator):
    name, share = "fitting", _FIRST
    limited = False  # it comes in large steps, and would leave nothing for the search
    goes_beside = True  # what fits is not to wait for a bound

    def __init__(self, asked: SearchQuestion) -> None:
        super().__init__(asked, WRITTEN_MOVES * len(asked.given))
        self.tried: Weighed | None = None
        self.in_vain = False
        self.going: Generator[bool, None, tuple[int, ...] | None] | None = None
        self.placed = False  # places are known for it
        self.clock: Clock = asked.limits.clock

    def ready(self) -> bool:
        known, asked = self.asked.best.fitting, self.asked
        if asked.limits.fit is None or known is None:
            return False
        return self.going is not None or self._is_worth(known) or self._is_worth_more()

    def _is_worth(self, known: Weighed, share: float = 1.0) -> bool:
        """Whether it costs less than that share of what the order does that was tried last, and than what fits."""
        fitting, once = self.asked.fitting, self.asked.once
        cheaper = self.tried is None or known.cost - once < share * (self.tried.cost - once)
        return cheaper and (fitting is None or known.cost < fitting)

    def _is_worth_more(self) -> bool:
        """Whether what was tried in vain may take far more by now."""
        most = self.clock.most
        return self.in_vain and most is not None and self.asked.limits.clock.work.spent >= _AGAIN * most

    def begin(self) -> Step:
        asked, known = self.asked, self.asked.best.fitting
        assert known is not None
        assert asked.limits.fit is not None
        if self.going is None or (not self.placed and self._is_worth(known, _FAR_CHEAPER)):
            self.tried, self.in_vain, self.placed = known, False, False
            self.clock = asked.aside(max(_PER_NODE * len(asked.given), asked.limits.clock.work.spent)).clock
            self.going = asked.limits.fit(known.steps(), self.clock)
        going = self.going

        def step(limits: Limits) -> list[Offer]:
            self.clock.work.whole = limits.clock.work
            try:
                self.placed = next(going)
            except StopIteration as ended:
                self.going, self.in_vain = None, ended.value is None
                return [] if ended.value is None else [Offer(np.array(ended.value, np.int64), self.name)]
            return []

        return step

    def end(self, entries: Sequence[Contender | None]) -> None:
        for entry in filter(None, entries):
            self.asked.fits_at(entry.cost)
            self.share = _LATER
