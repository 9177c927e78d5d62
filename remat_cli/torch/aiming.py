"""Plans whose memory is judged by the code that Inductor makes of them, not by the model of what it fuses.

Inductor also holds what no plan says: weights in layouts of its own, workspace, buffers kept for a later use, and what
it makes at once because one kernel makes it. A look at the code of a plan shows where that is. From then on the model
counts it as workspace of the ops that the kernel carries out, and the next plan is made with it. Where the code of a
plan is over the budget, the next one aims below it by half as much. A plan is brought near to the order of the graph
first (`alike.py`). Where the model has no plan within the budget any more, the leanest by all that was learnt is the
last one.

Each plan whose code was looked at before counts as well, by the peak that it had then. The code of the plan that is
used is looked at anew.

Invariant: in whatever order budgets are asked, a smaller one never holds more than a larger one. Among the plans whose
code was looked at for this graph, whatever the budget, none that agrees with what was answered before is better:
cheaper within the budget, or leaner where none keeps to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from remat_cli.torch.building import Split
from remat_cli.torch.generated import HeldByCode
from remat_cli.torch.planning import PlannedOrder
from remat_cli.torch.remembering import Order
from remat_cli.torch.written import More, Written

TRIES = 5  # plans after the one without recomputation; each has its code looked at


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

    `search`: a plan within so many bytes, where ops hold so much more than the model says. `alike`: the same computes
    in an order that gives equal layers equal functions, likewise. `judge`: an order as a plan, likewise. `look`: what
    the code holds, and whether Inductor is to have that code as it is: all but the plan without recomputation may be
    the one that is used.
    `as_written`: the peak of the code of the step as the user wrote it, given that without recomputation. `allowed`:
    the budget, given the peak as written.
    """

    search: Callable[[int, More], PlannedOrder]
    alike: Callable[[Order, More], Order]
    judge: Callable[[Order, More], PlannedOrder]
    build: Callable[[PlannedOrder], Split]
    look: Callable[[Split, bool], HeldByCode | None]
    as_written: Callable[[int], int]
    allowed: Callable[[int], int]


@dataclass(slots=True)
class _Aiming:
    """`without`: of the plan without recomputation. `tried`: the plans for this budget, by their orders. `splits`: the
    graphs of those whose code was looked at now; of others the peak is one that is known."""

    way: Aim
    written: Written
    splits: dict[Order, Split] = field(default_factory=dict)
    without: Foretold = Foretold(0, 0, 0, 0)
    tried: dict[Order, tuple[PlannedOrder, Foretold]] = field(default_factory=dict)

    def attempt(self, found: PlannedOrder) -> int | None:
        """The peak of a plan's code, which is looked at where it is not known; None where it cannot be told."""
        peak = self.written.peaks.get(found.order)
        if peak is None:
            peak = self.look(found)
        if peak is None:
            return None
        if not self.tried:
            as_written = self.way.as_written(peak)
            self.without = Foretold(peak, peak, as_written, self.way.allowed(as_written))
        self.tried[found.order] = found, replace(self.without, peak=peak)
        return peak

    def look(self, found: PlannedOrder) -> int | None:
        split = self.way.build(found)
        seen = self.way.look(split, bool(self.tried))
        if seen is None:
            return None
        self.splits[found.order], self.written.peaks[found.order] = split, seen.peak
        known = self.way.judge(found.order, self.written.more)
        learn(self.written.more, known, seen)
        return seen.peak

    def best(self) -> tuple[PlannedOrder, Foretold]:
        """The best that holds no less than was answered for smaller budgets, and no more than for larger ones."""
        budget, answers = self.without.budget, self.written.answers.items()
        least = max((peak for asked, peak in answers if asked <= budget), default=0)
        most = max(least, min((budget, *(peak for asked, peak in answers if asked >= budget))))

        def rank(pair: tuple[PlannedOrder, Foretold]) -> tuple[int, int]:
            found, told = pair
            return max(0, told.peak - most, least - told.peak), found.outcome.cost

        return min(self.tried.values(), key=rank)

    def missed_before(self) -> bool:
        """Whether the plan of a budget that was missed holds more than this budget too."""
        budget = self.without.budget
        return any(peak > max(asked, budget) for asked, peak in self.written.answers.items())

    def aim(self) -> None:
        """Search with all that the code was seen to hold. Where the model knows of no plan, the leanest was looked at:
        by all that was learnt. Otherwise the leanest by the model alone is considered, the same for all budgets."""
        budget, missed = self.without.budget, 0
        for _ in range(TRIES):
            if not self.best()[1].over:
                return
            found = self.search(budget + self.spare() - missed // 2, self.written.more)
            peak = None if found.order in self.tried else self.attempt(found)
            if not found.fits:
                return
            if peak is None:
                break
            missed = max(0, peak - budget)
        if self.best()[1].over:
            self.attempt(self.search(0, {}))

    def search(self, limit: int, more: More) -> PlannedOrder:
        """A plan within so many bytes, in the order of the graph as far as its peak allows."""
        found = self.way.search(limit, more)
        order = self.way.alike(found.order, more)
        return replace(found, order=order, outcome=self.way.judge(order, more).outcome)

    def spare(self) -> int:
        """By how much the model says too much of each plan whose code is known. Without recomputation the peak is
        elsewhere: where the model says too much there, that means nothing for other plans."""
        more = self.written.more
        known = [self.way.judge(order, more).outcome.peak - told.peak for order, (_, told) in self.tried.items()]
        return min(known) if len(known) > 1 else min(0, *known)

    def recall(self) -> None:
        """Consider the plans of other budgets as well."""
        for order in [order for order in self.written.peaks if order not in self.tried]:
            self.attempt(self.way.judge(order, {}))

    def holds(self, found: PlannedOrder, told: Foretold) -> bool:
        """Whether the code of a plan was looked at now, with this peak. Where it holds something else all that is known
        may be wrong, and is forgotten."""
        if found.order in self.splits or self.look(found) == told.peak:
            return True
        self.written.peaks = {order: peak for order, peak in self.written.peaks.items() if order in self.splits}
        self.written.more.clear()
        self.written.answers.clear()
        return False


def learn(more: More, found: PlannedOrder, seen: HeldByCode) -> None:
    """Count what the code holds beyond the model, for each kernel with the ops that it carries out."""
    memory = found.outcome.memory
    for held, places in seen.kernels:
        ops = {found.order[place] for place in places}
        over = held - max(memory[place] for place in places)
        if over > 0:
            more.update({op: more.get(op, 0) + over for op in ops})


def aim(way: Aim, whole: PlannedOrder, written: Written) -> Aimed | None:
    """The cheapest known plan whose code keeps to the budget, or else the leanest; None without code."""
    splits: dict[Order, Split] = {}
    while True:
        state = _Aiming(way, written, splits)
        if state.attempt(whole) is None:
            return None
        if not state.missed_before():
            state.aim()
        state.recall()
        found, told = state.best()
        if state.holds(found, told):
            written.answers[told.budget] = told.peak
            return Aimed(found, splits[found.order], told) if found.order in splits else None
