"""A bound of every schedule, whatever the order of its first computes: a search that stops where its work ends, and
goes on from there.

A relaxation is posed at a few pivots on a heavy path, and SCIP raises its bound. Where its answer would not fit, pivots
are added, or rows for peaks at nodes off the path, lazily. After the first round all begins anew where the linear
relaxation says more at other pivots.

Invariant: `bound` only rises, and holds for every legal order that fits; `infeasible` proves that no order fits. Counts
decide what is next, never seconds, and however the work is divided, without a time-out all of it gives the same bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import isfinite

import numpy as np

from solvers import scip
from solvers.clock import Clock
from solvers.methods.anyorder.moments import WithMoments, as_it_is, with_moments
from solvers.methods.anyorder.pivots import PivotChoice
from solvers.methods.anyorder.unit_chain import reversal_bound
from solvers.methods.anyorder.windows import heaviest_path, windows_of
from solvers.methods.exact.cuts import build_cuts, expand_cuts, select_small_values
from solvers.methods.exact.grouped import GroupedProgram, Windows
from solvers.methods.exact.relaxation import ADDED, Relaxation, first_boundaries
from solvers.methods.exact.tracing import estimate, tighten
from solvers.orders.arrays import Ints, arrays_of
from solvers.orders.bounds import PossibleCosts, list_needs
from solvers.orders.measure import memory_of
from solvers.problem import Grounds, Limits, Problem, Status

# rounds before a unit chain's bound is counted, because only a relaxation's proof can become a certificate: a chain of
# eight ops is proved so in four
_COUNTED = 4
_WEIGHED = 100_000  # columns of the relaxations, all together, in which other pivots are tried
_WIDE = 8_000  # columns of one of them, at most
_BUILT = 3  # columns posed in the time in which SCIP is given one


class BoundSearch:
    """One search for a bound, by a series of relaxations. `known`: a schedule that fits. `order`: the one that the last
    round's answer suggests, legal but perhaps over budget. `done`: the bound cannot be raised further. `seconds`: on
    processors, of SCIP's threads."""

    NAME = "bound over all orders"

    def __init__(self, problem: Problem, budget: int) -> None:
        self.given = problem
        self.budget = budget
        self.costs = PossibleCosts.of(problem)
        self.bound: float = self.costs.total
        self.counted, self.rounds = reversal_bound(problem, budget), 0
        self.known: Sequence[int] | None = None
        self.order: list[int] | None = None
        self.infeasible = self.done = False
        self.seconds = 0.0
        self.effort = 1
        self.chosen, self.weighed = False, 0  # whether other pivots were tried, and the columns that this took
        self.relaxation: Relaxation | None = None
        self.limits = Limits()
        self.enough: float | None = None
        self.begun = False  # whether moments were looked for, which takes long in large graphs
        self._look_in(as_it_is(problem))
        self.grounds = self._where()
        self.work = self._work()

    def begin(self, clock: Clock) -> None:
        """Put moments in."""
        self.begun = True
        self._look_in(with_moments(self.given, self.budget, clock))
        clock.spend(columns=len(self.problem.nodes))  # which is not much less to look at

    def _look_in(self, moments: WithMoments) -> None:
        self.moments, self.problem = moments, moments.problem
        self.ended = self.problem.ended()
        self.arrays = arrays_of(self.problem)
        self.writer = self.ended.writers()
        self.free = select_small_values(self.ended, self.budget)
        self.peaks: set[int] = set()  # nodes off the path with rows for their peaks
        self.windows = self._first_windows()

    def _where(self) -> Grounds:
        """Moments are left out: no certificate knows them."""
        origin, pivots = self.moments.origin, self.windows.pivots
        real = [pivot for pivot in pivots if origin[pivot] >= 0]
        peaks = {
            (bisect_left(real, pivots[group]) if group < len(pivots) else len(real), origin[node])
            for group, node in self._peaks()
            if origin[node] >= 0
        }
        return Grounds(self.budget, (), tuple(origin[pivot] for pivot in real), tuple(sorted(peaks)))

    def _peaks(self) -> Iterable[tuple[int, int]]:
        return product(range(len(self.windows.pivots) + 1), sorted(self.peaks))

    def _first_windows(self) -> Windows:
        """Of the boundaries for a given order, but on the path that passes through the most bytes over budget, only the
        middle one: it often gives as much as all, in a tenth of the time, and others come where the answer needs them.
        """
        plain = np.arange(len(self.problem.nodes), dtype=np.int64)
        memory = memory_of(self.arrays, plain)
        path = heaviest_path(self.ended, self.writer, [*(1 + 3 * (memory > self.budget)).tolist(), 0])
        chosen = first_boundaries(memory[path], self.budget)
        middle = chosen[len(chosen) // 2 :][:1]
        return windows_of(self.ended, self.writer, [path[place] for place in middle])

    def go(self, limits: Limits, enough: float | None = None) -> None:
        """Search until the work of this clock is done, to the end of a round at most; `enough`: a bound to stop at."""
        self.limits, self.enough, rounds = limits, enough, self.rounds
        for _ in self.work:
            if self.rounds > rounds or limits.clock.worn() or limits.clock.interrupts():
                return

    def _work(self) -> Iterator[None]:
        """Round after round: search the relaxation until the bound is enough, then refine it where its answer does not
        fit. Pauses wherever it can go on."""
        if not self.begun:
            self.begin(self.limits.clock)
            yield
        while not self.done:
            if self.rounds and not self.chosen:
                self.chosen = True
                yield from self._choose()
            if self.relaxation is None:
                grouped = self._pose_at(self.windows, self._peaks())
                tighten(grouped, self.limits.clock)
                self.limits.clock.spend(columns=_BUILT * len(grouped.program.costs))
                self.relaxation = Relaxation(grouped)
                yield
            answer = self._relax(self.relaxation)
            while self.relaxation.paused:
                yield
                answer = self._relax(self.relaxation)
            self._end_round(answer)
            yield

    def _choose(self) -> Iterator[None]:
        """Begin anew with other pivots if the linear relaxation costs more there."""

        def weigh(pivots: tuple[int, ...]) -> float | None:
            clock = self.limits.clock
            if self.weighed > _WEIGHED or clock.interrupts():
                return None
            grouped = self._pose_at(windows_of(self.ended, self.writer, pivots), ())
            columns = len(grouped.program.costs)
            self.weighed += columns
            if columns > _WIDE:
                return None
            return (estimate(grouped, clock) + grouped.program.offset) * self.costs.scale

        memory = memory_of(self.arrays, np.arange(len(self.problem.nodes), dtype=np.int64)).tolist()
        choice = PivotChoice(self.problem, weigh, self.costs.total)
        needs = list_needs(self.problem)
        pivots = yield from choice.run(self.windows.pivots, memory, needs, self.budget, list(self.moments.beside))
        if pivots and pivots != self.windows.pivots:
            self.windows, self.peaks = windows_of(self.ended, self.writer, pivots), set()
            self.relaxation, self.effort = None, 1

    def _relax(self, relaxation: Relaxation) -> scip.ProgramAnswer:
        """As far as the work goes."""
        clock, left = self.limits.clock, self.limits.clock.iterations()
        settings = scip.Settings(
            verbose=self.limits.verbose,
            clock=clock,
            gap=self.limits.gap / 4,
            seed=self.limits.seed,
            enough=None if self.enough is None else self.enough / self.costs.scale,
            iterations=left,
        )
        known = None if self.known is None or relaxation.paused else self.moments.put_in(self.known)
        seconds, iterations = relaxation.seconds, relaxation.work
        answer = relaxation.search(settings, self.effort, known).wait()
        relaxation.take(answer, self.costs.scale)
        self.seconds += relaxation.seconds - seconds
        clock.spend(iterations=relaxation.work - iterations)
        self._raise(answer.bound * self.costs.scale)
        return answer

    def _end_round(self, answer: scip.ProgramAnswer) -> None:
        if answer.status is Status.INFEASIBLE:
            self.infeasible = self.done = True
            self.grounds = self._where()
            return
        self.rounds += 1
        if self.rounds == _COUNTED and self.counted is not None:
            self.bound = max(self.bound, self.counted)
        if answer.values is None:
            self.effort *= 2
        else:
            self._refine(answer, answer.values)

    def _pose_at(self, windows: Windows, peaks: Iterable[tuple[int, int]]) -> GroupedProgram:
        grouped = build_cuts(self.ended, self.budget, windows, self.free, self.costs.scale, peaks, self.moments.beside)
        sure = sum(node.cost for index, node in enumerate(self.problem.nodes) if windows.is_sure(index))
        grouped.program.offset = sure / self.costs.scale
        self.limits.clock.spend(columns=len(grouped.program.costs))
        return grouped

    def _raise(self, bound: float) -> None:
        if isfinite(bound) and self.costs.from_bound(bound) > self.bound:
            self.bound, self.grounds = self.costs.from_bound(bound), self._where()

    def _refine(self, answer: scip.ProgramAnswer, values: Sequence[float]) -> None:
        assert self.relaxation is not None
        order = np.array(expand_cuts(self.relaxation.cuts, values), dtype=np.int64)
        self.order = self.moments.without(order.tolist())
        memory = memory_of(self.arrays, order)
        pivots, peaks = self._further(order, memory)
        if pivots or peaks:
            self.windows = windows_of(self.ended, self.writer, sorted({*self.windows.pivots, *pivots}))
            self.peaks |= peaks
            self.relaxation = None
        elif answer.status is Status.OPTIMAL:
            self.done = self.chosen
        else:
            self.effort *= 2

    def _further(self, order: Ints, memory: Ints) -> tuple[list[int], set[int]]:
        """Pivots and peaks to add where the order does not fit, the worst first."""
        over = np.flatnonzero(memory > self.budget)
        windows, peaks = self.windows, set[int]()
        for step in over[np.argsort(-memory[over], kind="stable")].tolist():
            index = int(order[step])
            if not windows.is_sure(index) and index not in self.peaks:
                if len(peaks) < ADDED:
                    peaks.add(index)
                continue
            if len(windows.pivots) - len(self.windows.pivots) >= ADDED:
                break
            pivot = _nearest(order, step, windows)
            if pivot is not None:
                windows = windows_of(self.ended, self.writer, [*windows.pivots, pivot])
        return sorted(set(windows.pivots).difference(self.windows.pivots)), peaks


def _nearest(order: Ints, step: int, windows: Windows) -> int | None:
    """The node itself if it can be a pivot, otherwise the nearest one in the order that can."""
    before, after = step, step
    while before > 0 and not windows.is_sure(int(order[before])):
        before -= 1
    while after < len(order) - 1 and not windows.is_sure(int(order[after])):
        after += 1
    near = (int(order[place]) for place in (before, after))
    return next((node for node in near if windows.is_sure(node) and node not in windows.pivots), None)
