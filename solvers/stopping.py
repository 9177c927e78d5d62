"""When a search has done enough: criteria that each say so, or not, of what is known so far.

Invariant: none but `Time` looks at a clock, so without a time-out the same search ends at the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from solvers.clock import Clock

ROUGHLY = 10  # times the gap that is asked for: proved as near as that, a search may lose patience
LEAST_WORK = 1_000_000  # moves without success, about two seconds' worth, before any search does


@dataclass(frozen=True, slots=True)
class Standing:
    """What a search knows. `cost`: of the cheapest order, which may have no places yet; `answer`: of what would answer
    now. `work`: all that was done, in moves; `won_at`: what had been when that answer came."""

    cost: int | None
    bound: float
    answer: int | None = None
    work: int = 0
    won_at: int = 0


Criterion = Callable[[Standing], bool]


@dataclass(frozen=True, slots=True)
class Gap:
    """No plan is cheaper by more than this share."""

    share: float

    def __call__(self, known: Standing) -> bool:
        return _is_near(known.cost, known.bound, self.share)


@dataclass(frozen=True, slots=True)
class Patience:
    """No plan is cheaper than the answer by more than this share, and none came for as much work as that took."""

    share: float
    least: int = LEAST_WORK

    def __call__(self, known: Standing) -> bool:
        near = _is_near(known.answer, known.bound, self.share)
        return near and known.work - known.won_at >= max(known.won_at, self.least)


@dataclass(frozen=True, slots=True)
class Time:
    """The clock lets no further step begin: time or work is used up, or somebody has had enough."""

    clock: Clock

    def __call__(self, _: Standing) -> bool:
        return self.clock.over()


def _is_near(cost: int | None, bound: float, share: float) -> bool:
    return cost is not None and cost <= bound * (1 + share)


def usual(gap: float, clock: Clock) -> Sequence[Criterion]:
    """What ends a search that is asked for no more than a plan within a gap."""
    return Gap(gap), Patience(ROUGHLY * gap), Time(clock)
