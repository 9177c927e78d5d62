"""Converts a set of saved values to an order of computes: an unsaved value is recomputed just before it is read.

Saved values may be the backward pass's own, as long as they need no gradient. They are made as soon as possible, so
that the values they are made from need not wait.

Invariant: the order is legal whatever the set; an output, and a value that may be computed only once, counts as saved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from solvers.methods.mincut.tangents import tangents
from solvers.problem import Problem

FOREVER = 1 << 60


@dataclass(slots=True)
class Rebuilding:
    """What the orders of one problem have in common."""

    problem: Problem
    writer: list[int]
    readers: list[list[int]]
    begins: int  # the first node of the backward pass
    fixed: frozenset[int]  # values that are always saved
    loose: frozenset[int]  # ops of the backward pass that could run before it

    @classmethod
    def of(cls, problem: Problem) -> Rebuilding:
        fixed = set(problem.outputs)
        fixed.update(value for node in problem.nodes if node.once for value in node.writes)
        begins = next((i for i, node in enumerate(problem.nodes) if node.backward), len(problem.nodes))
        loose = _loose(problem, begins)
        return cls(problem, problem.writers(), problem.readers(), begins, frozenset(fixed), loose)

    def order(self, saved: Collection[int], reach: int = FOREVER) -> tuple[int, ...]:
        """The forward pass as it is; then each op after the recomputed values that it reads.

        A rebuilt value stays while its next reader is at most `reach` ops away: for good, as in PyTorch's backward
        graph, or until it is rebuilt once more.
        """
        there = set(saved) | self.fixed
        kept = frozenset(there)
        early = self._early(saved)
        order = self._forward(early)
        for index in range(self.begins, len(self.problem.nodes)):
            node = self.problem.nodes[index]
            if index in early:  # its unsaved values are recomputed where they are needed
                continue
            again = sorted(self.problem.makers(node.reads, there, self.writer))
            order += (*again, index)
            for made in (*again, index):
                there.update(self.problem.nodes[made].writes)
            if reach < FOREVER:
                there.difference_update(
                    value
                    for value in self._touched((*again, index))
                    if value not in kept and self._next_use(value, index) > index + reach
                )
        return tuple(order)

    def _early(self, saved: Collection[int]) -> set[int]:
        """The ops of the backward pass that run before it, because they make saved values."""
        found: set[int] = set()
        waiting = [self.writer[value] for value in saved]
        while waiting:
            index = waiting.pop()
            if index in self.loose and index not in found:
                found.add(index)
                waiting += [self.writer[value] for value in self.problem.nodes[index].reads]
        return found

    def _forward(self, early: Collection[int]) -> list[int]:
        """The forward pass, each early op after the last of what it reads."""
        after: dict[int, list[int]] = {}
        at: dict[int, int] = {}
        for index in sorted(early):
            sources = [self.writer[value] for value in self.problem.nodes[index].reads]
            at[index] = max((at.get(source, source) for source in sources), default=-1)
            after.setdefault(at[index], []).append(index)
        order = after.get(-1, [])
        for index in range(self.begins):
            order += [index, *after.get(index, ())]
        return order

    def _touched(self, indices: Collection[int]) -> Iterator[int]:
        """Values of the forward pass that the ops read or write."""
        for index in indices:
            node = self.problem.nodes[index]
            yield from (value for value in (*node.reads, *node.writes) if self.writer[value] < self.begins)

    def _next_use(self, value: int, after: int) -> int:
        readers = self.readers[value]
        place = bisect_right(readers, after)
        return readers[place] if place < len(readers) else FOREVER


def _loose(problem: Problem, begins: int) -> frozenset[int]:
    """Ops of the backward pass that need none of its gradients."""
    writer, follows = problem.writers(), tangents(problem)
    found: set[int] = set()
    for index in range(begins, len(problem.nodes)):
        node = problem.nodes[index]
        there = all(writer[value] < begins or writer[value] in found for value in node.reads)
        if node.backward and there and not follows[index]:
            found.add(index)
    return frozenset(found)
