"""A bound of every schedule, whatever the order of its first computes: a search that continues from slice to slice.

A relaxation is posed at a few pivots on a heavy path, and SCIP raises its bound. Where its answer would not fit, pivots
are added, or rows for peaks at nodes off the path, lazily. After the first round all begins anew where the linear
relaxation says more at other pivots.

Invariant: `bound` only rises, and holds for every legal order that fits; `infeasible` proves that no order fits. Counts
decide the next step, never seconds: without a time-out the same slices give the same bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import product
from math import isfinite

import numpy as np

from solvers import scip
from solvers.clock import ITERATION_MOVES, Clock
from solvers.methods.anyorder.moments import WithMoments, as_it_is, with_moments
from solvers.methods.anyorder.pivots import PivotChoice
from solvers.methods.anyorder.unit_chain import reversal_bound
from solvers.methods.anyorder.windows import heaviest_path, windows_of
from solvers.methods.exact.cuts import build_cuts, expand_cuts, select_small_values
from solvers.methods.exact.grouped import GroupedProgram, Windows
from solvers.methods.exact.projection import project
from solvers.methods.exact.relaxation import ADDED, first_boundaries, tree
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
_SQUARED = 1500  # columns, squared, for an iteration of a first round, but two for each column at most


class BoundSearch:
    """One search for a bound; each call of `go` runs one round. `known`: a schedule that fits. `order`: the one that
    the relaxation's last answer suggests, legal but perhaps over budget. `done`: the bound cannot be raised further.
    `seconds`: on processors, of SCIP's threads."""

    NAME = "bound over all orders"

    def __init__(self, problem: Problem, budget: int, known: Sequence[int] | None = None) -> None:
        self.given = problem
        self.budget = budget
        self.costs = PossibleCosts.of(problem)
        self.bound: float = self.costs.total
        self.counted, self.rounds = reversal_bound(problem, budget), 0
        self.known = known
        self.order: list[int] | None = None
        self.infeasible = self.done = False
        self.columns = 0
        self.seconds = 0.0
        self.effort = 1
        self.chosen, self.weighed = False, 0  # whether other pivots were tried, and the columns that this took
        self.grouped: GroupedProgram | None = None
        self.solving: scip.Solving | None = None
        self.nodes = 0
        self.begun = False  # whether moments were looked for, which takes long in large graphs
        self._look_in(as_it_is(problem))
        self.grounds = self._where()

    def begin(self) -> None:
        """Put moments in."""
        self.begun = True
        self._look_in(with_moments(self.given, self.budget))

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
        """One round: search the relaxation until the bound is enough, then refine it where its answer does not fit."""
        self.prepare(limits)
        answer = self._relax(limits, enough)
        if answer.status is Status.INFEASIBLE:
            self.infeasible = self.done = True
            self.grounds = self._where()
            return
        self._raise(answer.bound * self.costs.scale)
        self.rounds += 1
        if self.rounds == _COUNTED and self.counted is not None:
            self.bound = max(self.bound, self.counted)
        if answer.values is None:
            self.effort *= 2
            return
        self._refine(answer)

    def prepare(self, limits: Limits) -> None:
        """Pose the relaxation of the next round, which takes little time beside its search."""
        if not self.begun:
            self.begin()
        if self.rounds and not self.chosen:
            self.chosen = True
            self._choose(limits)
        if self.grouped is None:
            self.grouped = self._pose_at(self.windows, self._peaks(), limits.clock)
            self.columns, self.nodes = len(self.grouped.program.costs), 0

    @property
    def prepared(self) -> bool:
        return self.grouped is not None

    def expected(self) -> int:
        """Moves that the round to come takes, as far as its size tells; rather too few, since its order leads far."""
        return ITERATION_MOVES * min(self.columns**2 // _SQUARED, 2 * self.columns)

    def _choose(self, limits: Limits) -> None:
        """Begin anew with other pivots if the linear relaxation costs more there."""

        def weigh(pivots: tuple[int, ...]) -> float | None:
            if self.weighed > _WEIGHED or limits.clock.over():
                return None
            grouped = self._pose_at(windows_of(self.ended, self.writer, pivots), (), limits.clock)
            columns = len(grouped.program.costs)
            self.weighed += columns
            if columns > _WIDE:
                return None
            return (estimate(grouped, limits.clock) + grouped.program.offset) * self.costs.scale

        memory = memory_of(self.arrays, np.arange(len(self.problem.nodes), dtype=np.int64)).tolist()
        choice = PivotChoice(self.problem, weigh, self.costs.total)
        pivots = choice.run(
            self.windows.pivots, memory, list_needs(self.problem), self.budget, list(self.moments.beside)
        )
        if pivots and pivots != self.windows.pivots:
            self.windows, self.peaks = windows_of(self.ended, self.writer, pivots), set()
            self.grouped = self.solving = None
            self.effort = 1

    def _relax(self, limits: Limits, enough: float | None) -> scip.ProgramAnswer:
        assert self.grouped is not None
        if self.solving is None:
            tighten(self.grouped, limits.clock)
        self.nodes += self.effort * tree(self.columns)
        settings = scip.Settings(
            verbose=limits.verbose,
            clock=limits.clock,
            gap=limits.gap / 4,
            seed=limits.seed,
            enough=None if enough is None else enough / self.costs.scale,
            nodes=self.nodes,
            parameters={"branching/relpscost/initcand": 20},
        )
        if self.solving is None:
            starts = [] if self.known is None else [project(self.grouped, self.moments.put_in(self.known))]
            self.solving = scip.Solving(self.grouped.program, settings, starts)
        else:
            self.solving.go_on(limits.clock, self.nodes, settings.enough)
        seconds, iterations = self.solving.seconds, self.solving.iterations
        answer = self.solving.wait()
        self.seconds += self.solving.seconds - seconds
        limits.clock.spend(iterations=self.solving.iterations - iterations)
        return answer

    def _pose_at(self, windows: Windows, peaks: Iterable[tuple[int, int]], clock: Clock) -> GroupedProgram:
        grouped = build_cuts(self.ended, self.budget, windows, self.free, self.costs.scale, peaks, self.moments.beside)
        sure = sum(node.cost for index, node in enumerate(self.problem.nodes) if windows.is_sure(index))
        grouped.program.offset = sure / self.costs.scale
        clock.spend(columns=len(grouped.program.costs))
        return grouped

    def _raise(self, bound: float) -> None:
        if isfinite(bound) and self.costs.from_bound(bound) > self.bound:
            self.bound, self.grounds = self.costs.from_bound(bound), self._where()

    def _refine(self, answer: scip.ProgramAnswer) -> None:
        assert self.grouped is not None
        assert answer.values is not None
        order = np.array(expand_cuts(self.grouped, answer.values), dtype=np.int64)
        self.order = self.moments.without(order.tolist())
        memory = memory_of(self.arrays, order)
        pivots, peaks = self._further(order, memory)
        if pivots or peaks:
            self.windows = windows_of(self.ended, self.writer, sorted({*self.windows.pivots, *pivots}))
            self.peaks |= peaks
            self.grouped = self.solving = None
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
