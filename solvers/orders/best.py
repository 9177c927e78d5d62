"""The best order known so far: measures an order, compares it, keeps it, notes whose it is, reports it.

Invariant: cost and peak are `measure`'s, after computes that nobody needs are removed and updates of inputs wait until
they may run. An order that cannot run is never kept. Of the orders within the budget the cheapest is kept, and among
equals the one of lower peak. Beside it the order of least peak is kept, and among equals the cheapest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.ledger import Ledger
from solvers.notes import Note, SolverNote
from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.measure import ILLEGAL, measure, trim
from solvers.problem import Limits, Problem, Progress, Result, Status
from solvers.updates import HeldUpdates

GIVEN, KNOWN = "the order given", "a plan known before"  # who found an order that no search did


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """An order that can run, with its cost and peak. `by`: the part of the search that found it."""

    order: Ints
    cost: int
    peak: int
    by: str = ""

    def steps(self) -> tuple[int, ...]:
        return tuple(self.order.tolist())


def any_order(_: Ints, __: int) -> bool:
    return True


def in_order(order: Ints, count: int) -> bool:
    """Whether the first computes are 0, 1, ... count - 1, in that order."""
    _, first = np.unique(order, return_index=True)
    return len(first) == count and bool(np.all(np.diff(first) > 0)) and int(order.max()) == count - 1


class Best:
    """`among`: the class of orders that a search may answer with."""

    def __init__(
        self, problem: Problem, budget: int, limits: Limits, among: Callable[[Ints, int], bool] = any_order
    ) -> None:
        self.problem = problem
        self.budget = budget
        self.limits = limits
        self.among = among
        self.arrays: Arrays = arrays_of(problem)
        self.updates = HeldUpdates(problem)
        self.ledger = Ledger()
        self.bound: float | None = None  # the bound that is reported beside the cost
        self.fitting: Weighed | None = None
        self.leanest: Weighed | None = None
        self.won_at = 0  # the work that was done when the best order came

    @property
    def order(self) -> Ints | None:
        return None if self.fitting is None else self.fitting.order

    @property
    def cost(self) -> int | None:
        return None if self.fitting is None else self.fitting.cost

    def weigh(self, order: Ints | Sequence[int], by: str = "") -> Weighed | None:
        """Measure the order without the computes that nobody needs; None if it cannot run or is not in the class."""
        steps = np.asarray(order, dtype=np.int64)
        if not len(steps) or not self.among(steps, len(self.arrays.cost)):
            return None
        trimmed = trim(self.arrays, steps)
        legal = self._in_time(trimmed) if len(trimmed) else None
        if legal is None:
            return None
        cost, peak = measure(self.arrays, legal)
        return None if peak == ILLEGAL else Weighed(legal, cost, peak, by)

    def _in_time(self, steps: Ints) -> Ints | None:
        """The order with updates of inputs after all reads of the old values; None if it leaves the class."""
        timely = self.updates.in_time(steps)
        return timely if timely is steps or self.among(timely, len(self.arrays.cost)) else None

    def offer(self, order: Ints | Sequence[int], by: str) -> Weighed | None:
        """Weigh an order and keep it if it is better. `by`: the part of the search that found it."""
        found = self.weigh(order, by)
        if found is not None:
            self.offer_weighed(found)
        return found

    def offer_weighed(self, found: Weighed) -> None:
        """Keep what was weighed if it is better."""
        if self.leanest is None or (found.peak, found.cost) < (self.leanest.peak, self.leanest.cost):
            self.leanest = found
        before = self.fitting
        if self.fits(found) and (before is None or (found.cost, found.peak) < (before.cost, before.peak)):
            self.fitting = found
            if before is None or found.cost < before.cost:
                self.won_at = self.limits.clock.work.spent
                self.ledger.won(found.by)
                self.tell()

    def raise_bound(self, bound: float, by: str) -> bool:
        """Whether no schedule costs less than this, and that was not known before; nobody is told yet."""
        if self.bound is not None and bound <= self.bound:
            return False
        if self.bound is not None:
            self.ledger.raised(by)
        self.bound = bound
        return True

    def fits(self, found: Weighed | None) -> bool:
        return found is not None and found.peak <= self.budget

    def over(self) -> bool:
        return self.limits.clock.over()

    def closed(self, bound: float) -> bool:
        """Whether the bound is as near to the cost as the limits ask."""
        return self.cost is not None and self.cost <= bound * (1 + self.limits.gap)

    def tell(self) -> None:
        order = None if self.fitting is None else self.fitting.steps()
        self.limits.report(Progress(self.limits.clock.elapsed(), self.cost, self.bound, order, by=self.ledger.found_by))

    def attributed(self, result: Result) -> Result:
        """The result with who found it and what the parts of the search took."""
        known = self.fitting or self.leanest
        found_by = "" if known is None else known.by
        return replace(result, found_by=found_by, bound_by=self.ledger.bound_by, parts=self.ledger.parts())

    def result(self, bound: float | None = None, notes: tuple[Note, ...] = ()) -> Result:
        """The result of a method that has tried what it can; finding nothing proves nothing.

        Where no order of its own fits, running each op once may.
        """
        plain = range(len(self.arrays.cost))
        if self.fitting is None and (self.leanest is None or self.fits(self.weigh(plain))):
            self.offer(plain, GIVEN)
        if self.fitting is None:
            assert self.leanest is not None, "the order as given can always run"
            reach = Note(SolverNote.LEAST_PEAK_REACHED, (self.leanest.peak,))
            return self.attributed(Result(Status.UNKNOWN, self.leanest.steps(), bound, (*notes, reach)))
        total = sum(node.cost for node in self.problem.nodes)
        if self.fitting.cost == total:
            return self.attributed(Result(Status.OPTIMAL, self.fitting.steps(), total, notes))
        return self.attributed(Result(Status.FEASIBLE, self.fitting.steps(), bound, notes))


def refuse(problem: Problem, budget: int, limits: Limits, why: Note) -> Result:
    """The result of a method that does not apply to this graph: the schedule without recomputation, and the reason.

    Where that schedule fits, it is an optimum, whatever the method; elsewhere nothing is known.
    """
    found = Best(problem, budget, limits).result(notes=(why,))
    return found if found.status.found else replace(found, notes=(why,))
