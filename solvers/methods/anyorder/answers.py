"""The relaxation over all orders, and the way from its answers to orders.

The rows are those of `solvers/methods/exact/grouped.py`, for the windows that pivots leave to each node whatever the
order of first computes.

Invariant: the minimum is a bound for every legal order; `expand` gives a legal order, which may be over budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from solvers.methods.exact.grouped import (
    SURELY,
    GroupedProgram,
    Windows,
    add_availability,
    add_memory,
    add_peak,
    add_windows,
    start_program,
)
from solvers.problem import Problem


def build_any_order(
    problem: Problem,
    budget: int,
    windows: Windows,
    free: frozenset[int],
    scale: float,
    peaks: Iterable[tuple[int, int]] = (),
    beside: Mapping[int, frozenset[int]] | None = None,
) -> GroupedProgram:
    """Build the relaxation with costs divided by `scale`. `peaks`: (group, node) that must fit beside what stays: row
    (4)."""
    grouped = start_program(problem, windows, free, scale, beside)
    for group in grouped.groups:
        add_availability(grouped, group)
    add_windows(grouped)
    for group in grouped.groups[1:]:
        add_memory(grouped, group, budget)
    readers = set(grouped.replaceable.values())
    for group, node in sorted(set(peaks)):
        column = grouped.runs[group].get(node)
        if column is not None and (column == SURELY or node not in readers):
            add_peak(grouped, group, node, budget)
    return grouped


def expand(grouped: GroupedProgram, solution: Sequence[float]) -> list[int]:
    """An order that holds exactly the values that S holds across each boundary, and runs the necessary computes as late
    as it can."""
    return _Expansion(grouped, solution).run()


class _Expansion:
    def __init__(self, grouped: GroupedProgram, solution: Sequence[float]) -> None:
        self.grouped = grouped
        self.held = [{v for v, column in row.items() if solution[column] > 0.5} for row in grouped.held]
        self.begins: list[list[int]] = [[] for _ in grouped.runs]  # the nodes that first run in each group
        for index, (low, high) in enumerate(zip(grouped.windows.low, grouped.windows.high, strict=True)):
            chosen = (g for g in range(low, high) if solution[grouped.runs[g][index]] > 0.5)
            self.begins[next(chosen, high)].append(index)
        self.order: list[int] = []
        self.ran: set[int] = set()
        self.live: set[int] = set()

    def run(self) -> list[int]:
        pivots, last = self.grouped.windows.pivots, len(self.grouped.problem.nodes) - 1
        for g, begins in enumerate(self.begins):
            if g:
                self.live &= self.held[g] | self.grouped.free
            end = pivots[g] if g < len(pivots) else last
            for index in begins:
                if index not in self.ran and index != end:
                    self.compute(index)
            if end != last:
                self.ensure(sorted(self.held[g + 1].difference(self.grouped.problem.nodes[end].writes)))
                self.compute(end)
        self.ensure(self.grouped.problem.nodes[last].reads)
        return self.order

    def compute(self, index: int) -> None:
        self.ensure(self.grouped.problem.nodes[index].reads)
        self.order.append(index)
        self.ran.add(index)
        self.live.update(self.grouped.problem.nodes[index].writes)

    def ensure(self, values: Iterable[int]) -> None:
        nodes, missing = self.grouped.problem.nodes, set[int]()
        stack = [value for value in values if value not in self.live]
        while stack:
            index = self.grouped.writer[stack.pop()]
            if index not in missing:
                missing.add(index)
                stack += [value for value in nodes[index].reads if value not in self.live]
        for index in sorted(missing):
            self.order.append(index)
            self.ran.add(index)
            self.live.update(nodes[index].writes)
