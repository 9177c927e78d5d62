"""The default method: a pool of orders, a few operators that better them, and a scheduler that gives work by gain.

Operators find orders or raise the bound over all orders: annealing, walks, the least peak while nothing fits, the exact
search within one order, and a relaxation without an order. The search ends when cost and bound meet,
when patience is lost, or when nobody has anything left to do.

Invariant: `bound_any_order` holds for every schedule, `bound` for all that first compute the ops in the order of the
schedule returned. Work decides the next step, never seconds: without a time-out only the seed decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solvers.methods.auto.annealing import Annealing
from solvers.methods.auto.fitting import Fitting
from solvers.methods.auto.leanest import find_lean
from solvers.methods.auto.least_peak import LeastPeak
from solvers.methods.auto.question import SearchQuestion
from solvers.methods.auto.raising import Raising
from solvers.methods.auto.scheduler import Scheduler
from solvers.methods.auto.walking import EvictionWalks
from solvers.methods.auto.within import Within
from solvers.methods.exact.options import NOTHING_KNOWN, Known
from solvers.methods.exact.small import MOST, Small
from solvers.notes import Note, SolverNote
from solvers.orders.best import GIVEN, KNOWN
from solvers.problem import Grounds, Limits, Problem, Result, Status


def solve(problem: Problem, budget: int, limits: Limits, options: Known = NOTHING_KNOWN) -> Result:
    """`candidates`: orders known beforehand, such as the plans of smaller budgets."""
    return Auto(problem, budget, limits).run(options.candidates)


class Auto:
    """One search over all orders for the cheapest schedule within a budget."""

    def __init__(self, problem: Problem, budget: int, limits: Limits) -> None:
        self.asked = asked = SearchQuestion(problem, budget, limits)
        self.within, self.raising, annealing = Within(asked), Raising(asked), Annealing(asked)
        operators = EvictionWalks(asked), LeastPeak(asked), Fitting(asked), self.within, self.raising
        self.scheduler = Scheduler(asked, operators, annealing)
        self.lean: tuple[int, ...] | None = None  # the order of `find_lean`

    def run(self, candidates: Sequence[Sequence[int]], refusing: bool = True) -> Result:
        """`refusing`: whether it is to be told how small a budget would do, where nothing fits."""
        with self.asked.workers:
            self.search(candidates)
        if refusing and self.asked.best.fitting is None and not self.asked.limits.clock.over():
            self.find_least()
        return self.result()

    def search(self, candidates: Sequence[Sequence[int]] = ()) -> None:
        asked = self.asked
        asked.pool.offer(np.array(asked.given, np.int64), GIVEN)
        for order in candidates:
            asked.pool.offer(np.array(order, np.int64), KNOWN)
        if len(asked.given) <= MOST and not asked.done():
            self.search_all()
        while not asked.done() and self.scheduler.step():
            pass

    def search_all(self) -> None:
        """All schedules of a small problem."""
        asked = self.asked
        small = Small(asked.as_asked, asked.budget, asked.best, asked.limits.clock, ordered=False)
        small.run()
        asked.no_plan = small.infeasible
        asked.raise_floor(small.bound, "all schedules")
        if asked.best.fitting is not None:
            asked.pool.offer(asked.best.fitting.order, asked.best.fitting.by)

    def find_least(self) -> None:
        """Where nothing fits: how small a budget would do. `find_lean` says it by the work that it always takes, so
        that whoever wants the leanest order has it."""
        asked = self.asked
        with asked.best.ledger.at_work(LeastPeak.name):
            self.lean, bound = find_lean(asked.as_asked, asked.limits)
        asked.raise_least(bound)
        asked.best.offer(self.lean, LeastPeak.name)

    def bound(self) -> tuple[float, Grounds]:
        """The bound for schedules with the best schedule's order of first computes, and its grounds."""
        own = self.within.own()
        found = [(self.asked.floor, self.raising.below.grounds)]
        hunts = [hunt for hunt in self.within.hunts if hunt.first == own]
        found += [(hunt.hunt.bound, hunt.hunt.grounds.renamed(hunt.way.node_of)) for hunt in hunts]
        return max(found, key=lambda pair: pair[0])

    def result(self) -> Result:
        asked, best, below = self.asked, self.asked.best, self.raising.below
        if best.fitting is None:
            steps = None if best.leanest is None else best.leanest.steps()
            unknown = asked.least.told(Result(Status.UNKNOWN, steps, grounds=(below.grounds,), lean=self.lean))
            proof = asked.least.against(asked.budget, searched=asked.no_plan)
            return best.attributed(unknown.refuted(proof) if proof else unknown)
        bound, grounds = self.bound()
        status, note = Status.FEASIBLE, SolverNote.BOUND_IN_OWN_ORDER
        if best.closed(asked.floor):
            status, note = Status.OPTIMAL, SolverNote.BOUND_IN_ANY_ORDER
        elif best.closed(bound):
            status = Status.ORDER_OPTIMAL
        both = tuple(dict.fromkeys((grounds, below.grounds)))
        lost = status is Status.FEASIBLE and not asked.limits.clock.over()
        result = Result(status, best.fitting.steps(), bound, (Note(note),), bound_any_order=asked.floor, grounds=both)
        return best.attributed(asked.least.told(replace(result, patience_lost=lost)))
