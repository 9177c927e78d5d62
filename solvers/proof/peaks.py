"""Proves that no schedule stays below a peak: sets of values that must be in memory together are followed back in time.

When a node runs, its reads are in memory together. Of any copies that are in memory together, take the one made last.
While its node ran, the others were there with all that the node reads and writes. Before that, the others and the
node's reads were there together. So every schedule that reaches the node goes back through such sets to the empty one.
If each way passes a node that takes too much, no schedule stays below the peak.

The end needs the last copies of outputs, which have memory of their own.

Invariant: every set that may have come before is examined; if there are too many, nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from solvers.problem import Problem
from solvers.proof.memory import BlockMemory

MOST = 100_000  # how many sets are examined at most


@dataclass(frozen=True, slots=True)
class _Together:
    """Values in memory together. `last`: the outputs among them whose last copies are meant."""

    values: frozenset[int]
    last: frozenset[int] = frozenset()


def surely_needs(problem: Problem, node: int | None, peak: int) -> bool:
    """Whether every schedule reaches that peak before the end of a node's first run, or before its own end."""
    return _Way(problem).blocked(node, peak)


class _Way:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.memory = BlockMemory(problem.ended())
        self.writer = problem.writers()
        self.base = {write: node.base(write) for node in problem.nodes for write in node.writes}

    def blocked(self, node: int | None, peak: int) -> bool:
        if node is None:
            begin = _Together(frozenset(), frozenset(self.problem.outputs))
        elif 0 <= node < len(self.problem.nodes):
            begin = _Together(frozenset(self.problem.nodes[node].reads))
        else:
            return False
        if self._while_running(node, begin, _Together(frozenset())) >= peak:
            return True
        seen, waiting = {begin}, [begin]
        while waiting:
            together = waiting.pop()
            if not (together.values or together.last) or len(seen) > MOST:
                return False
            for before in self._before(together, peak):
                if before not in seen:
                    seen.add(before)
                    waiting.append(before)
        return True

    def _before(self, after: _Together, peak: int) -> Iterator[_Together]:
        """The sets that may have been in memory before the node that ran last, for each such node that takes less than
        the peak."""
        for index in {self.writer[value] for value in after.values | after.last}:
            node = self.problem.nodes[index]
            last = after.last.difference(node.writes)
            before = _Together((after.values.difference(node.writes) | frozenset(node.reads)) - last, last)
            if self._while_running(index, before, after) < peak:
                yield before

    def _while_running(self, index: int | None, before: _Together, after: _Together) -> int:
        node = self.problem.end() if index is None else self.problem.nodes[index]
        sizes = self.problem.sizes
        own = sum(sizes[value] for value in before.last)
        rest = [value for value in before.values if not self._lives_in(value, before.last)]
        written = self.memory.written(node, after.values, after.last)
        return self.problem.resident + node.workspace + own + self.memory.held(rest) + written

    def _lives_in(self, value: int, last: frozenset[int]) -> bool:
        """Whether its copy may be a view of one of these outputs' last copies."""
        at: int | None = value
        while at is not None and at >= 0:
            if at in last:
                return True
            at = self.base[at]
        return False
