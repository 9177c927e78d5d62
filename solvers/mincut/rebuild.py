"""A set of saved values as an order of computes: what nobody saved is computed again just before it is read.

Invariant: the order is legal whatever the set says; an output, and what may be computed only once, counts as saved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from solvers.problem import Problem

FOREVER = 1 << 60


@dataclass(slots=True)
class Rebuilding:
    """What orders of the same problem have in common."""

    problem: Problem
    writer: list[int]
    readers: list[list[int]]
    begins: int  # the first node of the backward pass
    fixed: frozenset[int]  # values that are saved in any case

    @classmethod
    def of(cls, problem: Problem) -> Rebuilding:
        fixed = set(problem.outputs)
        fixed.update(value for node in problem.nodes if node.once for value in node.writes)
        begins = next((i for i, node in enumerate(problem.nodes) if node.backward), len(problem.nodes))
        return cls(problem, problem.writers(), problem.readers(), begins, frozenset(fixed))

    def order(self, saved: Collection[int], reach: int = FOREVER) -> tuple[int, ...]:
        """Forward as it is; then each op, after what it reads and is not there.

        What is rebuilt stays while its next reader is at most `reach` ops away: for good, as in PyTorch's backward
        graph, or until it is rebuilt once more.
        """
        there = set(saved) | self.fixed
        kept = frozenset(there)
        order = list(range(self.begins))
        for index in range(self.begins, len(self.problem.nodes)):
            node = self.problem.nodes[index]
            again = self._missing(node.reads, there)
            order += (*again, index)
            there.update(node.writes)
            if reach < FOREVER:
                there.difference_update(
                    value
                    for value in self._touched((*again, index))
                    if value not in kept and self._next_use(value, index) > index + reach
                )
        return tuple(order)

    def _touched(self, indices: Collection[int]) -> Iterator[int]:
        """Values of the forward pass that the ops read or write."""
        for index in indices:
            node = self.problem.nodes[index]
            yield from (value for value in (*node.reads, *node.writes) if self.writer[value] < self.begins)

    def _next_use(self, value: int, after: int) -> int:
        readers = self.readers[value]
        place = bisect_right(readers, after)
        return readers[place] if place < len(readers) else FOREVER

    def _missing(self, reads: Collection[int], there: set[int]) -> list[int]:
        """What must run before `reads` are there, in the problem's order; marks it as there."""
        wanted: set[int] = set()
        waiting = [value for value in reads if value not in there]
        while waiting:
            index = self.writer[waiting.pop()]
            if index not in wanted:
                wanted.add(index)
                waiting += [value for value in self.problem.nodes[index].reads if value not in there]
        for index in wanted:
            there.update(self.problem.nodes[index].writes)
        return sorted(wanted)
