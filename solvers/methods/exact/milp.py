"""Checkmate's question answered with a proof: the cheapest recomputation that fits, for the given first computes.

One anytime loop. Eviction walks give schedules at once; cuts in time give a bound and say what to hold across each
boundary, which guides further walks; boundaries are added where the relaxation's answer does not fit, until schedule
and bound meet. Beside SCIP, annealing improves the best schedule. (P. Jain et al., "Checkmate: Breaking the Memory Wall
with Optimal Tensor Rematerialization", MLSys 2020, pose the question.)

Invariant: the bound holds for every schedule that first computes the nodes in the order given, wherever and however
often it recomputes, and the schedules returned are of that class. How much is searched between two looks at the bound
is counted in moves, iterations and tree nodes, never in seconds: without a time-out only the seed decides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from solvers import scip
from solvers.methods.exact.cuts import build_cuts, expand_cuts, select_small_values, windows_in_order
from solvers.methods.exact.grouped import GroupedProgram
from solvers.methods.exact.improve import WORK, Improver
from solvers.methods.exact.low_walks import lowest
from solvers.methods.exact.options import NOTHING_KNOWN, Known
from solvers.methods.exact.relaxation import (
    Relaxation,
    first_boundaries,
    hints_of,
    over_again,
    over_budget,
)
from solvers.methods.exact.small import MOST, Small
from solvers.methods.exact.tracing import tighten
from solvers.notes import Note, SolverNote
from solvers.orders.best import GIVEN, KNOWN, Best, in_order
from solvers.orders.bounds import PossibleCosts, peak_bound
from solvers.orders.measure import memory_of
from solvers.pebbles.floor import prove
from solvers.problem import Grounds, Limits, Problem, Result, Status

_IDLE = 100  # tries without success before the search gives up


def solve(problem: Problem, budget: int, limits: Limits, options: Known = NOTHING_KNOWN) -> Result:
    """`candidates`: orders known beforehand, such as the plans of smaller budgets."""
    hunt = Hunt(problem, budget, limits)
    for order in options.candidates:
        hunt.best.offer(order, KNOWN)
    return hunt.run()


class Hunt:
    """One search for the best order within one budget."""

    def __init__(self, problem: Problem, budget: int, limits: Limits) -> None:
        self.problem = problem
        self.ended = problem.ended()
        self.budget = budget
        self.limits = limits
        self.clock = limits.clock
        self.costs = PossibleCosts.of(problem)
        self.bound = self.costs.total
        self.least = peak_bound(problem)
        self.infeasible = self.least.peak > budget
        self.best = Best(problem, budget, limits, in_order)
        self.best.raise_bound(self.bound, "")
        self.improver = Improver(self.best, self.done)
        self.effort = 1
        self.seconds = 0.0  # on processors, of SCIP's threads
        self.rival: int | None = None  # the cost of a schedule in another order: no more than that needs to be proved
        self.size: tuple[Note, ...] = ()
        every = tuple(range(len(problem.nodes)))
        self.grounds = Grounds(budget, every, every if len(every) <= MOST else ())

    def run(self) -> Result:
        self.begin()
        for _ in self.rounds():
            pass
        return self.result()

    def begin(self) -> None:
        """Find the schedules that need no relaxation."""
        self.best.offer(range(len(self.problem.nodes)), GIVEN)
        if not self.done():
            self.improver.walk_plainly()
        if self.best.order is None:
            self.seek_least_peak()

    def seek_least_peak(self) -> None:
        """While nothing fits: look for an order that does, for a proof that none can, and for the least peak."""
        if len(self.problem.nodes) <= MOST and self.search_all():
            return
        quiet = self.limits.silent()
        self.least = prove(self.problem, self.budget + 1, quiet.share(1 / 4))
        self.infeasible = self.infeasible or self.least.peak > self.budget
        lean = lowest(self.problem, quiet.share(1 / 4))
        if lean.leanest is not None:
            self.best.offer(lean.leanest.order, lean.leanest.by)
        if self.infeasible and self.best.leanest is not None:
            self.least = prove(self.problem, self.best.leanest.peak, quiet.share(1 / 4))

    def search_all(self) -> bool:
        """Search all schedules of a small problem; the result says whether one was found."""
        small = Small(self.problem, self.budget, self.best, self.clock, ordered=True)
        small.run()
        self.infeasible = self.infeasible or small.infeasible
        self.raise_bound(small.bound)
        return self.best.fitting is not None

    def closed(self) -> bool:
        return self.best.closed(self.bound)

    def done(self) -> bool:
        return self.infeasible or self.closed() or self.beaten() or self.clock.over()

    def beaten(self) -> bool:
        """Whether no schedule in this order can be better than the known one."""
        return self.rival is not None and self.rival <= self.bound

    def raise_bound(self, bound: float) -> None:
        if isfinite(bound) and self.costs.from_bound(bound) > self.bound:
            self.bound = self.costs.from_bound(bound)
            self.best.raise_bound(self.bound, "relaxation")
            self.best.tell()

    def rounds(self) -> Iterator[None]:
        """Solve relaxations, each refined where the answer of the one before does not fit, and try the orders they
        suggest."""
        memory = memory_of(self.best.arrays, np.arange(len(self.problem.nodes), dtype=np.int64))
        taus = first_boundaries(memory, self.budget)
        repeats: set[tuple[int, int]] = set()
        relaxation: Relaxation | None = None
        while not self.done():
            relaxation = relaxation or self.pose(taus, repeats)
            if self.clock.over():
                return
            answer = self.relax(relaxation)
            if answer.status is Status.INFEASIBLE:
                self.infeasible = self.best.order is None
                return
            more, again = self.follow(relaxation.cuts, answer.values)
            self.improver.polish()
            yield
            if answer.status is not Status.OPTIMAL:
                self.effort *= 2
                if relaxation.promising(self.best.cost):
                    continue
            if not more and repeats.issuperset(again):
                more = sorted(
                    {stage - before for stage, _ in again for before in (0, 1)}.difference(
                        taus, [len(self.problem.nodes)]
                    )
                )
            if more or not repeats.issuperset(again):
                taus, repeats = sorted({*taus, *more}), repeats if more else repeats | again
                relaxation = None
            elif answer.status is Status.OPTIMAL:
                self.improver.polish(_IDLE)
                return

    def pose(self, taus: Sequence[int], repeats: set[tuple[int, int]]) -> Relaxation:
        free = select_small_values(self.ended, self.budget)
        windows = windows_in_order(self.ended, taus)
        peaks = sorted((bisect_left(windows.pivots, stage), node) for stage, node in repeats)
        cuts = build_cuts(self.ended, self.budget, windows, free, self.costs.scale, peaks)
        cuts.program.offset = self.costs.total / self.costs.scale
        tighten(cuts, self.clock)
        relaxation = Relaxation(cuts)
        self.grounds = replace(self.grounds, pivots=windows.pivots, peaks=tuple(peaks))
        self.size = (Note(SolverNote.RELAXATION_SIZE, (relaxation.columns, len(cuts.windows.pivots))),)
        return relaxation

    def follow(self, cuts: GroupedProgram, values: Sequence[float] | None) -> tuple[list[int], set[tuple[int, int]]]:
        """Try the order that the relaxation's answer suggests. Where it does not fit: stages, and (stage, node) of
        repeats."""
        if values is None or self.done():
            return [], set()
        order = np.array(expand_cuts(cuts, values), dtype=np.int64)
        memory = memory_of(self.best.arrays, order)
        known = self.best.cost
        if known is None or self.best.arrays.cost[order].sum() < known:  # a dearer one teaches nothing
            self.best.offer(order, "relaxation")
            self.improver.walk_with(hints_of(cuts, values))
            self.improver.mend(order)
        return over_budget(memory, order, self.budget, cuts.windows.pivots), over_again(memory, order, self.budget)

    def relax(self, relaxation: Relaxation) -> scip.ProgramAnswer:
        """Run SCIP on the relaxation, and beside it tries at a better schedule."""
        cost = self.best.cost
        settings = scip.Settings(
            verbose=self.limits.verbose,
            clock=self.clock,
            gap=self.limits.gap / 4,
            seed=self.limits.seed,
            enough=None if cost is None else (cost / (1 + self.limits.gap) + self.costs.unit) / self.costs.scale,
        )
        before = relaxation.seconds
        solving = relaxation.search(settings, self.effort, self.best.order)
        turns = [replace(self.improver.turn, order=None)]
        while solving.running() and not self.clock.interrupts():
            turns.append(self.improver.attempt(turns[-1]))
        answer = solving.wait()
        self.seconds += solving.seconds - before
        earned = (answer.work - relaxation.work) // WORK
        while len(turns) <= earned and not self.clock.interrupts():
            turns.append(self.improver.attempt(turns[-1]))
        if not self.clock.interrupts():  # results and the seeds of later tries must not depend on the clock
            del turns[earned + 1 :]
        self.improver.adopt(turns[-1])
        self.clock.spend(iterations=answer.work - relaxation.work, nodes=answer.nodes - relaxation.nodes)
        relaxation.take(answer, self.costs.scale)
        self.raise_bound(relaxation.bound)
        return answer

    def result(self) -> Result:
        best = self.best
        if best.fitting is not None:
            status = Status.ORDER_OPTIMAL if self.closed() else Status.FEASIBLE
            status = Status.OPTIMAL if best.closed(self.costs.total) else status
            notes = (Note(SolverNote.BOUND_IN_ORDER), *self.size)
            found = Result(status, best.fitting.steps(), self.bound, notes, bound_any_order=self.costs.total)
            return self.told(found)
        order = None if best.leanest is None else best.leanest.steps()
        found = self.told(Result(Status.UNKNOWN, order))
        proof = self.least.against(self.budget, searched=self.infeasible, in_order=True)
        return found.refuted(proof) if proof else found

    def told(self, result: Result) -> Result:
        return self.best.attributed(self.least.told(replace(result, grounds=(self.grounds,))))
