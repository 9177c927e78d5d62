"""Plans whose memory is judged by the code that Inductor makes of them, not by the model of what it fuses.

Inductor also holds what no plan says: weights in layouts of its own, workspace, buffers kept for a later use, and what
it makes at once because one kernel makes it. So a plan is made with what its code holds too much taken off, and then
again. Where none of these keeps to the budget, plans of the graph that do not depend on the budget are tried, until one
does, and each once. Each plan whose code was written before counts as well, by the peak that it had then. The code of
the plan that is used is written anew.

Invariant: of the plans whose code was written for this graph, whatever the budget, a cheaper one whose code keeps to
the budget is never passed over, and where none does, none is leaner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from remat_cli.torch.building import Split
from remat_cli.torch.planning import PlannedOrder
from remat_cli.torch.remembering import Order
from remat_cli.torch.written import Written

TRIES = 2  # plans after the one without recomputation; Inductor writes its code for each
HASTE = 0.5  # share of the difference by which each later try takes off more than it


@dataclass(frozen=True, slots=True)
class Foretold:
    """The bytes that Inductor's code holds at its peak: for the plan, without recomputation, and as written; and the
    budget."""

    peak: int
    whole: int
    written: int
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

    `search`: a plan within so many bytes by the model. `leaner`: plans from the leanest up, the same for all budgets.
    `judge`: an order as a plan. `tell`: the peak of the code. `as_written`: the same for the step as
    the user wrote it, given that without recomputation. `allowed`: the budget, given the peak as written.
    """

    search: Callable[[int], PlannedOrder]
    leaner: Callable[[], Sequence[PlannedOrder]]
    judge: Callable[[Order], PlannedOrder]
    build: Callable[[PlannedOrder], Split]
    tell: Callable[[Split], int | None]
    as_written: Callable[[int], int]
    allowed: Callable[[int], int]


@dataclass(slots=True)
class _Aiming:
    """`without`: of the plan without recomputation. `tried`: the plans for this budget, by their orders. `splits`: the
    graphs of those whose code was written now; of others the peak is one that is known."""

    way: Aim
    written: Written
    splits: dict[Order, Split] = field(default_factory=dict)
    without: Foretold = Foretold(0, 0, 0, 0)
    tried: dict[Order, tuple[PlannedOrder, Foretold]] = field(default_factory=dict)

    def attempt(self, found: PlannedOrder) -> int | None:
        """The peak of a plan's code, which is written where it is not known; None where it cannot be told."""
        peak = self.written.peaks.get(found.order)
        if peak is None:
            peak = self.write(found)
        if peak is None:
            return None
        if not self.tried:
            as_written = self.way.as_written(peak)
            self.without = Foretold(peak, peak, as_written, self.way.allowed(as_written))
        self.tried[found.order] = found, replace(self.without, peak=peak)
        return peak

    def write(self, found: PlannedOrder) -> int | None:
        split = self.way.build(found)
        peak = self.way.tell(split)
        if peak is not None:
            self.splits[found.order], self.written.peaks[found.order] = split, peak
        return peak

    def best(self) -> tuple[PlannedOrder, Foretold]:
        return min(self.tried.values(), key=lambda pair: (pair[1].over, pair[0].outcome.cost))

    def aim(self, whole: PlannedOrder, peak: int) -> None:
        """Search with what the code holds too much taken off."""
        found, limit = whole, whole.outcome.peak
        for place in range(TRIES):
            if peak <= self.without.budget or not found.fits:
                return
            over = peak - self.without.budget
            limit = min(limit, found.outcome.peak) - int(over * (1 + HASTE * place))
            found = self.way.search(limit)
            told = self.attempt(found)
            if told is None:
                return
            peak = told

    def go_lean(self) -> None:
        """Have the code written of plans that are the same for all budgets, until one keeps to this budget."""
        if self.written.lean:
            return
        budget = self.without.budget
        for found in sorted(self.way.leaner(), key=lambda plan: (plan.outcome.peak > budget, -plan.outcome.peak)):
            peak = self.attempt(found)
            if peak is None or peak <= budget:
                return
        self.written.lean = True

    def recall(self) -> None:
        """Consider the plans of other budgets as well."""
        for order in [order for order in self.written.peaks if order not in self.tried]:
            self.attempt(self.way.judge(order))

    def holds(self, found: PlannedOrder, told: Foretold) -> bool:
        """Whether the code of a plan was written now, with this peak. Where it holds something else all that is known
        may be wrong, and is forgotten."""
        if found.order in self.splits or self.write(found) == told.peak:
            return True
        self.written.peaks = {order: peak for order, peak in self.written.peaks.items() if order in self.splits}
        self.written.lean = False
        return False


def aim(way: Aim, whole: PlannedOrder, written: Written) -> Aimed | None:
    """The cheapest known plan whose code keeps to the budget, or else the leanest; None without code."""
    splits: dict[Order, Split] = {}
    while True:
        state = _Aiming(way, written, splits)
        peak = state.attempt(whole)
        if peak is None:
            return None
        state.aim(whole, peak)
        state.recall()
        if state.best()[1].over:
            state.go_lean()
        found, told = state.best()
        if state.holds(found, told):
            return Aimed(found, splits[found.order], told) if found.order in splits else None
