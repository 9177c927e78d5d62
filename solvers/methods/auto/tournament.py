"""A tournament: many short goes from orders of different kinds, and longer ones from those that came furthest.

Near the least memory most goes end near where they began, and a few come far; which ones is known long before they
end. So from each order many go a short way, and only the best go on. The price of a byte over the budget is high from
the beginning, since an order that is far over the budget does not find back there.

Invariant: counts decide what is tried, never seconds; `best` is offered all that the goes come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice

import numpy as np

from solvers.methods.auto.local import LocalSearch
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.measure import memory_of
from solvers.side_by_side import in_lots, side_by_side

NAME = "tournament"
# the temperature, as a share of the cost of everything once, and the price of a byte over budget, where 1 is the cost
# of making an average byte
_KINDS = ((1e-4, 30.0), (1e-3, 30.0), (1e-4, 100.0), (1e-3, 100.0), (1e-2, 100.0), (1e-4, 300.0), (1e-5, 30.0))
_FIRST, _LATER = 14, 7  # goes from each order in the first round, and in a later one
_SHORTEST, _LONGER = 1 / 32, 1.6  # the length of the first goes, in usual ones, and that of a later round's
_ROUNDS = 5
_LEFT = 4  # orders that go on from a round to the next
_OF_ONE, _MIXED = 2, 3  # of these, so many from one start at most, in so many rounds
_TOGETHER = 8  # goes side by side, before the clock is looked at
_SEEDS = 7919  # a prime, to keep the seeds of goes apart


@dataclass(frozen=True, slots=True, order=True)
class _Standing:
    """The less the better: `over` is 0 where the order fits, and then `cost` decides."""

    over: int
    cost: int
    start: int
    steps: Ints = field(compare=False)


@dataclass(slots=True)
class Tournament:
    """`moves`: of a usual go."""

    local: LocalSearch
    best: Best
    moves: int
    goes: int = 0

    def run(self, starts: Sequence[Ints]) -> list[Ints]:
        """The orders that are left in the end, the best first."""
        found = (self._stand(order, start) for start, order in enumerate(starts))
        left = sorted(standing for standing in found if standing is not None)
        length, many = self.moves * _SHORTEST, _FIRST
        for turn in range(_ROUNDS):
            if self.best.over():
                break
            left = _choose(self._round(left, many, int(length)), mixed=turn < _MIXED)
            length, many = length * _LONGER, _LATER
        return [standing.steps for standing in left]

    def _round(self, left: Sequence[_Standing], many: int, moves: int) -> list[_Standing]:
        clock = self.best.limits.clock
        found = list(left)
        goes = [(standing, kind) for standing in left for kind in islice(cycle(_KINDS), many)]
        for lot in in_lots(goes, _TOGETHER):
            if self.best.over():
                break
            calls = [self._go(standing, kind, moves) for standing, kind in lot]
            reached = side_by_side([self.best.ledger.counted(NAME, call) for call in calls])
            clock.spend(moves * len(lot))
            stood = [self._stand(order, standing.start) for (standing, _), order in zip(lot, reached, strict=True)]
            found += [standing for standing in stood if standing is not None]
        return found

    def _go(self, standing: _Standing, kind: tuple[float, float], moves: int) -> Callable[[], Ints]:
        """A go of that temperature and price, yet to be called."""
        self.goes += 1
        cooling = self.local.cool(self.goes * _SEEDS, moves, *kind)
        return lambda: self.local.descend(standing.steps, cooling, self.best.limits.clock).order

    def _stand(self, order: Ints, start: int) -> _Standing | None:
        known = self.best.offer(order, NAME)
        if known is None:
            return None
        over = 0
        if not self.best.fits(known):
            over = int(np.maximum(memory_of(self.best.arrays, known.order) - self.best.budget, 0).sum())
        return _Standing(over, known.cost, start, known.order)


def _choose(found: Sequence[_Standing], mixed: bool) -> list[_Standing]:
    """The best that differ from each other."""
    left: list[_Standing] = []
    for standing in sorted(found):
        alike = any((standing.over, standing.cost) == (other.over, other.cost) for other in left)
        of_one = sum(standing.start == other.start for other in left)
        if not alike and not (mixed and of_one >= _OF_ONE):
            left.append(standing)
        if len(left) == _LEFT:
            break
    return left
