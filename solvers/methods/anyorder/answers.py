"""From orders to answers of the relaxation and back.

Invariant: `project` of a legal order satisfies every row, whatever the order; `expand` gives a legal order, which may
be over budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solvers.methods.anyorder.program import TimedProgram
from solvers.methods.exact.replaceable import advance
from solvers.methods.exact.tracing import SURELY


def project(timed: TimedProgram, order: Sequence[int]) -> list[float]:
    """The (C, S, H) of an order, which does not name the last node."""
    nodes, pivots = timed.problem.nodes, timed.windows.pivots
    order = advance(timed.problem, timed.passing, order)
    solution = [0.0] * len(timed.program.costs)
    first: dict[int, int] = {}
    for step, index in enumerate(order):
        first.setdefault(index, step)
    g = len(pivots)
    needed = set(nodes[-1].reads)
    for step in range(len(order) - 1, -1, -1):
        index = order[step]
        if g > 0 and first[pivots[g - 1]] == step:
            for value in needed & timed.held[g].keys():
                solution[timed.held[g][value]] = 1.0
            g -= 1
        if timed.runs[g].get(index, SURELY) != SURELY:
            solution[timed.runs[g][index]] = 1.0
        needed.difference_update(nodes[index].writes)
        needed.update(nodes[index].reads)
    for g, blocks in enumerate(timed.joint):
        for value, column in timed.held[g].items():
            if solution[column] > 0 and timed.blocks.root[value] in blocks:
                block, most = blocks[timed.blocks.root[value]]
                solution[block] = max(solution[block], min(1.0, timed.blocks.floor[value] / most))
    for g, columns in enumerate(timed.across):
        last = timed.needed_at_end(g)
        for value, column in columns.items():
            ends = value in last or solution[timed.held[g + 1][value]] > 0
            made = timed.runs[g].get(timed.writer[value])
            if ends and solution[timed.held[g][value]] > 0 and (made is None or solution[made] == 0):
                solution[column] = 1.0
    return solution


def expand(timed: TimedProgram, solution: Sequence[float]) -> list[int]:
    """An order that holds just what S holds across each boundary, and runs what it must as late as it can."""
    return _Expansion(timed, solution).run()


class _Expansion:
    def __init__(self, timed: TimedProgram, solution: Sequence[float]) -> None:
        self.timed = timed
        self.held = [{v for v, column in row.items() if solution[column] > 0.5} for row in timed.held]
        self.begins: list[list[int]] = [[] for _ in timed.runs]  # what first runs in each group
        for index, (low, high) in enumerate(zip(timed.windows.low, timed.windows.high, strict=True)):
            chosen = (g for g in range(low, high) if solution[timed.runs[g][index]] > 0.5)
            self.begins[next(chosen, high)].append(index)
        self.order: list[int] = []
        self.ran: set[int] = set()
        self.live: set[int] = set()

    def run(self) -> list[int]:
        pivots, last = self.timed.windows.pivots, len(self.timed.problem.nodes) - 1
        for g, begins in enumerate(self.begins):
            if g:
                self.live &= self.held[g] | self.timed.free
            end = pivots[g] if g < len(pivots) else last
            for index in begins:
                if index not in self.ran and index != end:
                    self.compute(index)
            if end != last:
                self.ensure(sorted(self.held[g + 1].difference(self.timed.problem.nodes[end].writes)))
                self.compute(end)
        self.ensure(self.timed.problem.nodes[last].reads)
        return self.order

    def compute(self, index: int) -> None:
        self.ensure(self.timed.problem.nodes[index].reads)
        self.order.append(index)
        self.ran.add(index)
        self.live.update(self.timed.problem.nodes[index].writes)

    def ensure(self, values: Iterable[int]) -> None:
        nodes, missing = self.timed.problem.nodes, set[int]()
        stack = [value for value in values if value not in self.live]
        while stack:
            index = self.timed.writer[stack.pop()]
            if index not in missing:
                missing.add(index)
                stack += [value for value in nodes[index].reads if value not in self.live]
        for index in sorted(missing):
            self.order.append(index)
            self.ran.add(index)
            self.live.update(nodes[index].writes)
