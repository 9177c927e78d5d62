"""A relaxation made sharper before it is searched: rows that trace what is read to what that was made from.

With C(g, j) for "node j runs in group g" (1 where it surely does) and S(g, v) for "v is held as group g begins",

    C(h, j) <= S(g, v1) + ... + S(g, vk) + C(g .. h, writer(vk)), g <= h, where j reads v1, whose writer reads v2, and
    so on: what j reads was held as group g began, or what that is made from was, or it was made since

and where it is not sure in which group of its window j first runs, whether that is before group g or not,

    1 <= C(h < g, j) + S(g, v1) + ... + S(g, vk) + C(h >= g, writer(vk)), h in j's window

They are found where the linear relaxation's answer breaks them.

Invariant: no answer in whole numbers is lost. How many are found is decided by counts, never by seconds, unless time is
up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from solvers.clock import Clock
from solvers.methods.exact.grouped import SURELY, GroupedProgram
from solvers.orders.arrays import arrays_of
from solvers.orders.traces import MOST, ROUNDS, STALLED, Floats, broken
from solvers.scip import INFINITY, Linear

_GAIN = 0.001  # share of the bound's rise so far that a round must add
_GLANCES = 3  # rounds of an estimate
_LARGE = 20_000  # in columns: from here on the linear program alone takes too long
_ITERATIONS = 30_000  # iterations of the simplex method, in all


def tighten(grouped: GroupedProgram, clock: Clock) -> None:
    """Add rows to the program."""
    if len(grouped.program.costs) > _LARGE:
        return
    tracing = Tracing(grouped, clock)
    first = before = -INFINITY
    stalled = 0
    for _ in range(ROUNDS):
        cost, values = tracing.solve()
        if not values or clock.interrupts() or tracing.iterations > _ITERATIONS:
            break
        first = max(first, cost) if first == -INFINITY else first
        stalled = 0 if cost - before > _GAIN * (cost - first) else stalled + 1
        before = cost
        if stalled >= STALLED or not tracing.add(values):
            break


def estimate(grouped: GroupedProgram, clock: Clock) -> float:
    """What the linear relaxation costs after a few rounds of rows."""
    tracing = Tracing(grouped, clock)
    cost, values = tracing.solve()
    for _ in range(_GLANCES):
        if not values or not tracing.add(values):
            break
        cost, values = tracing.solve()
    return cost


class Tracing:
    """The linear relaxation, and the rows that its answers break."""

    def __init__(self, grouped: GroupedProgram, clock: Clock) -> None:
        self.grouped, self.clock = grouped, clock
        self.arrays = arrays_of(grouped.problem)
        self.free = np.zeros(len(grouped.problem.sizes), np.bool_)
        self.free[sorted(grouped.free)] = True
        windows = grouped.windows
        self.last = np.where(np.array(windows.low) < windows.high, windows.high, -1)  # where a node may yet wait
        self.linear = Linear(grouped.program.costs, _ITERATIONS)
        self.given = self.iterations = 0
        self.known: set[tuple[int, ...]] = set()

    def solve(self) -> tuple[float, Sequence[float]]:
        """Solve the relaxation with all present rows."""
        rows, lows = [], []
        for columns, coefficients, low, high in self.grouped.program.rows[self.given :]:
            largest = max(map(abs, coefficients), default=1.0)
            for side, sign in ((low, 1.0), (-high, -1.0)):
                if side > -INFINITY:
                    pairs = zip(columns, coefficients, strict=True)
                    rows.append([(column, sign * times / largest) for column, times in pairs])
                    lows.append(side / largest)
        self.linear.add_rows(rows, lows)
        self.given = len(self.grouped.program.rows)
        cost, values, _ = self.linear.solve()
        self.iterations += self.linear.iterations
        program = self.grouped.program
        self.clock.spend(linear=(self.linear.iterations, len(program.rows) + len(program.costs)))
        return cost, values

    def add(self, values: Sequence[float]) -> bool:
        """Add the rows that are broken most; the result says whether there were any."""
        program = self.grouped.program
        before = len(program.rows)
        for _, less, columns in sorted(self._broken(np.array(values)), reverse=True)[:MOST]:
            if (less, *columns) in self.known:
                continue
            self.known.add((less, *columns))
            if less == SURELY:
                program.row(columns, [1.0] * len(columns), low=1.0)
            else:
                program.row([*columns, less], [1.0] * len(columns) + [-1.0], low=0.0)
        return len(program.rows) > before

    def _broken(self, values: Floats) -> Iterator[tuple[float, int, tuple[int, ...]]]:
        """For each broken row: by how much, the column of the run, and the columns of which one must be 1."""
        grouped, nodes, values_count = self.grouped, len(self.grouped.problem.nodes), len(self.free)
        runs = [self._at(columns, values, nodes) for columns in grouped.runs]

        def held(group: int) -> Floats:
            self.clock.spend(looks=nodes * (len(runs) - group))
            return self._at(grouped.held[group], values, values_count)

        for row in broken(self.arrays, self.free, runs, held, self.last):
            columns = self._columns(row.group, row.until, row.path)
            if row.waits:
                yield row.off, SURELY, (*columns, *self._runs_before(row.node, row.group))
            else:
                yield row.off, grouped.runs[row.until][row.node], columns

    def _columns(self, group: int, until: int, path: Sequence[int]) -> tuple[int, ...]:
        grouped, source = self.grouped, self.grouped.writer[path[-1]]
        held = [grouped.held[group][value] for value in path if value in grouped.held[group]]
        return *held, *(grouped.runs[g][source] for g in range(group, until + 1) if source in grouped.runs[g])

    def _runs_before(self, node: int, group: int) -> tuple[int, ...]:
        return tuple(columns[node] for columns in self.grouped.runs[:group] if node in columns)

    def _at(self, columns: dict[int, int], values: Floats, count: int) -> Floats:
        found = np.zeros(count)
        for index, column in columns.items():
            found[index] = 1.0 if column == SURELY else values[column]
        return found
