"""Other orders of first computes, in which ops that free more than they take run as soon as they can, and ops that take
more wait until they are needed.

Invariant: every node runs once, and the order is legal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from solvers.problem import Problem
from solvers.reductions.views import Contraction


def in_order_of(problem: Problem, order: Sequence[int]) -> Contraction:
    """The problem with its nodes in another order in which they could run, and the way back."""
    place = {index: step for step, index in enumerate(order)}
    return Contraction(
        replace(problem, nodes=tuple(problem.nodes[index] for index in order)),
        expand=lambda steps: tuple(order[step] for step in steps),
        shrink=lambda indices: tuple(place[index] for index in indices),
        node_of=order.__getitem__,
    )


def lazy_orders(problem: Problem) -> list[list[int]]:
    """Two orders in which ops wait until they are needed; in one of them an op that frees what it takes does not
    wait."""
    return [_lazy(problem), _lazy(problem, eager=False)]


def _lazy(problem: Problem, eager: bool = True) -> list[int]:
    """An order in which nodes wait until something needs them, or until they would free at least what they take."""
    return _Walk(problem).run(eager)


class _Walk:
    """One pass over the nodes, each run as late as can be."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.writer = problem.writers()
        self.readers = problem.readers()
        self.outputs = frozenset(problem.outputs)
        self.unread = [len(readers) for readers in self.readers]
        self.done: set[int] = set()
        self.order: list[int] = []
        # the number of nodes that a node waits for, and the bytes that it would then free, less those that it would
        # take
        self.waits = [len({self.writer[value] for value in node.reads}) for node in problem.nodes]
        self.gain = [-sum(problem.sizes[value] for value in node.writes) for node in problem.nodes]
        for value in range(len(problem.sizes)):
            self._heed_last(value)

    def run(self, eager: bool) -> list[int]:
        for index in range(len(self.problem.nodes)):
            if index not in self.done and self.gain[index] >= 0:
                self._demand(index, eager)
        for index in range(len(self.problem.nodes)):
            self._demand(index, eager)
        return self.order

    def _heed_last(self, value: int) -> None:
        """Count a value as freed by the only node that has yet to read it."""
        if self.unread[value] == 1 and value not in self.outputs:
            for reader in self.readers[value]:
                if reader not in self.done:
                    self.gain[reader] += self.problem.sizes[value]

    def _demand(self, index: int, eager: bool) -> None:
        waiting = [index]
        while waiting:
            at = waiting[-1]
            missing = [self.writer[value] for value in self.problem.nodes[at].reads]
            missing = [source for source in missing if source not in self.done]
            if at in self.done or not missing:
                waiting.pop()
                self._compute(at, eager)
            else:
                waiting += sorted(missing, reverse=True)

    def _compute(self, index: int, eager: bool) -> None:
        ready = [index]
        while ready:
            at = ready.pop()
            if at in self.done:
                continue
            self.done.add(at)
            self.order.append(at)
            for value in self.problem.nodes[at].reads:
                self.unread[value] -= 1
                self._heed_last(value)
            after = {user for value in self.problem.nodes[at].writes for user in self.readers[value]}
            for user in after:
                self.waits[user] -= 1
            near = after if eager else set()
            near.update(user for v in self.problem.nodes[at].reads for user in self.readers[v] if eager)
            ready += [user for user in sorted(near, reverse=True) if self._is_free(user)]

    def _is_free(self, index: int) -> bool:
        return index not in self.done and self.waits[index] == 0 and self.gain[index] >= 0
