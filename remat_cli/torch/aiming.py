"""Plans whose memory is judged by the code that Inductor makes of them, not by the model of what it fuses.

Inductor also holds what no plan says: weights in layouts of its own, workspace, buffers kept for a later use. So a plan
is made with what its code holds too much taken off, and then again.

Invariant: of the plans that were tried, a cheaper one whose code keeps to the budget is never passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from remat_cli.torch.building import Split
from remat_cli.torch.planning import PlannedOrder

TRIES = 4  # plans after the one without recomputation; Inductor writes its code for each


@dataclass(frozen=True, slots=True)
class Foretold:
    """The bytes that Inductor's code holds at its peak, for the plan and without recomputation, and the budget."""

    peak: int
    whole: int
    budget: int

    @property
    def over(self) -> int:
        return max(0, self.peak - self.budget)


@dataclass(frozen=True, slots=True)
class Aimed:
    """A plan with the graphs that were built of it."""

    found: PlannedOrder
    split: Split
    told: Foretold


@dataclass(frozen=True, slots=True)
class Aim:
    """How plans are made and judged.

    `search`: a plan within so many bytes by the model. `tell`: the peak of the code. `allowed`: the budget, given the
    peak without recomputation.
    """

    search: Callable[[int], PlannedOrder]
    build: Callable[[PlannedOrder], Split]
    tell: Callable[[Split], int | None]
    allowed: Callable[[int], int]


def aim(way: Aim, whole: PlannedOrder) -> Aimed | None:
    """The cheapest plan tried whose code keeps to the budget, or else the leanest; None without code."""
    return min(_tried(way, whole), key=lambda plan: (plan.told.over, plan.found.outcome.cost), default=None)


def _tried(way: Aim, whole: PlannedOrder) -> Iterator[Aimed]:
    split = way.build(whole)
    peak = way.tell(split)
    if peak is None:
        return
    before, found, budget = peak, whole, way.allowed(peak)
    yield Aimed(whole, split, Foretold(peak, before, budget))
    limit = whole.outcome.peak
    for _ in range(TRIES):
        if peak <= budget or not found.fits:
            return
        limit = min(limit, found.outcome.peak) - (peak - budget)
        found = way.search(limit)
        split = way.build(found)
        peak = way.tell(split)
        if peak is None:
            return
        yield Aimed(found, split, Foretold(peak, before, budget))
