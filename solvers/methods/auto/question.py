"""What all operators of one search share: the question, the best so far, the pool, and when it is enough."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from solvers.annealing.local import usual_moves
from solvers.methods.auto.pool import OrderPool
from solvers.orders.best import Best
from solvers.orders.bounds import PeakBound, cost_bound, peak_bound
from solvers.problem import Limits, Problem
from solvers.side_by_side import SearchThreads
from solvers.stopping import Standing, usual
from solvers.updates import following_readers


class State(NamedTuple):
    """How far a search is. `worth`: of the best order; `fitting`: the cost of the cheapest that fits where it is to
    run."""

    worth: tuple[int, int]
    floor: float
    fitting: int | None


class SearchQuestion:
    """`problem` is searched in; `as_asked` is the problem itself, where updates come after the readers of what they
    write over."""

    def __init__(self, problem: Problem, budget: int, limits: Limits) -> None:
        self.as_asked, self.problem, self.budget = problem, following_readers(problem), budget
        self.limits = limits = replace(limits, clock=limits.clock.own())
        self.workers = SearchThreads()
        self.enough = usual(limits.gap, limits.clock)
        self.best = Best(problem, budget, limits)
        self.pool = OrderPool(self.best)
        self.once = sum(node.cost for node in problem.nodes)  # the cost of everything once
        self.total = max(1, self.once)
        self.fitting: int | None = None  # the cost of the cheapest order that was made to fit where it is to run
        self.fitted_at = 0  # the work that was done by then
        self.floor: float = cost_bound(problem)  # of the cost of every schedule
        self.best.raise_bound(self.floor, "")
        self.least = peak_bound(problem)
        self.no_plan = False
        self.given = tuple(range(len(problem.nodes)))
        self.moves = usual_moves(len(self.given))
        self.walked: list[tuple[int, ...]] = []

    @property
    def infeasible(self) -> bool:
        return self.no_plan or self.least.peak > self.budget

    def done(self) -> bool:
        best = self.best
        answer, won_at = (best.cost, best.won_at) if self.limits.fit is None else (self.fitting, self.fitted_at)
        known = Standing(best.cost, self.floor, answer, self.limits.clock.work.spent, won_at)
        return self.infeasible or any(enough(known) for enough in self.enough)

    def aside(self, work: int | None = None) -> Limits:
        """Limits for a step beside others, which counts its own work; `work`: how much it may take."""
        return replace(self.limits.silent(), clock=replace(self.limits.clock.timed(), most=work))

    def raise_floor(self, bound: float, by: str) -> bool:
        self.floor = max(self.floor, bound)
        return self.best.raise_bound(bound, by)

    def raise_least(self, found: PeakBound) -> None:
        self.least = max(self.least, found, key=lambda bound: bound.peak)

    def fits_at(self, cost: int) -> None:
        if self.fitting is None or cost < self.fitting:
            self.fitting, self.fitted_at = cost, self.limits.clock.work.spent

    def state(self) -> State:
        return State(self.pool.worth, self.floor, self.fitting)

    def gain_since(self, before: State) -> float:
        """What was gained of everything that a search seeks, as shares of the cost of everything once."""
        fitting = 0 if before.fitting is None or self.fitting is None else before.fitting - self.fitting
        return self.gain(before.worth, self.pool.worth) + (self.floor - before.floor + fitting) / self.total

    def gain(self, before: tuple[int, int], worth: tuple[int, int]) -> float:
        """How much less an order lacks than another, as a share of that; or how much less it costs, as a share of the
        cost of everything once."""
        (lacked, cost), (lacks, costs) = before, worth
        return max(0.0, (lacked - lacks) / lacked if lacked else 0.0 if lacks else (cost - costs) / self.total)
