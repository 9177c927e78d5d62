"""Updates of inputs in their place: where in an order each comes.

Invariant: `in_time` gives the same computes, as often; what it holds back waits for no more than it must. An order of
`following_readers` is one of the problem itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.problem import Node, Problem

Ints = NDArray[np.int64]


def in_time(problem: Problem, order: Sequence[int]) -> tuple[int, ...]:
    """The order with each update held back until the last compute that reads what it replaces.

    What reads a value of an update that is held back waits with it. Nobody waits for ever: nodes stand in an order in
    which every writer comes before its readers and every reader of an input before its update, so of the computes that
    wait, one of the node that stands first can run.
    """
    return tuple(HeldUpdates(problem).in_time(np.array(order, np.int64)).tolist())


class HeldUpdates:
    """The updates of one problem, for many orders."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.readers = problem, problem.waits()
        pairs = [(update, reader) for update, readers in self.readers.items() for reader in readers]
        self.update, self.reader = np.array(pairs, np.int64).reshape(-1, 2).T

    def in_time(self, order: Ints) -> Ints:
        """What `in_time` makes of the order; the order itself where none comes too early."""
        if not len(self.update):
            return order
        places = np.arange(len(order))
        first, last = np.full(len(self.problem.nodes), len(order)), np.full(len(self.problem.nodes), -1)
        first[order[::-1]], last[order] = places[::-1], places
        if not np.any(last[self.reader] > first[self.update]):
            return order
        holding = _Holding(self.problem, order.tolist(), self.readers)
        return np.array((*holding.result, *holding.held), np.int64)


def following_readers(problem: Problem) -> Problem:
    """The problem in which each update reads a value of no bytes of every node that it waits for.

    So whoever changes the order of first computes keeps updates behind those of the readers, and need not know why.
    Nodes keep their numbers. What is computed again may still come too late, and is for `in_time` to put right.
    """
    sizes = list(problem.sizes)
    more: dict[int, tuple[list[int], list[int]]] = {}  # node -> what it reads and writes besides
    for index, readers in problem.waits().items():
        for reader in sorted(readers):
            more.setdefault(reader, ([], []))[1].append(len(sizes))
            more.setdefault(index, ([], []))[0].append(len(sizes))
            sizes.append(0)
    if not more:
        return problem

    def extended(node: Node, reads: Sequence[int], writes: Sequence[int]) -> Node:
        return replace(node, reads=(*node.reads, *reads), writes=(*node.writes, *writes))

    nodes = tuple(extended(node, *more.get(index, ((), ()))) for index, node in enumerate(problem.nodes))
    return replace(problem, nodes=nodes, sizes=tuple(sizes))


class _Holding:
    """Takes computes one after the other, and passes on those that wait for nothing."""

    def __init__(self, problem: Problem, order: Sequence[int], waits: Mapping[int, frozenset[int]]) -> None:
        self.problem = problem
        self.result: list[int] = []
        self.held: list[int] = []
        times = Counter(order)
        self.ahead = {index: sum(times[reader] for reader in readers) for index, readers in waits.items()}
        self.updates: dict[int, list[int]] = {}  # node -> the updates that wait for it
        for index, readers in waits.items():
            for reader in readers:
                self.updates.setdefault(reader, []).append(index)
        for index in order:
            self.take(index)

    def take(self, index: int) -> None:
        self.held.append(index)
        while (place := self._next()) is not None:
            self._run(self.held.pop(place))

    def _next(self) -> int | None:
        """The first of what is held that may run: it waits for no update, and for nothing that was held before it."""
        waiting: set[int] = set()  # values
        for place, index in enumerate(self.held):
            if not self.ahead.get(index) and waiting.isdisjoint(self.problem.nodes[index].reads):
                return place
            waiting.update(self.problem.nodes[index].writes)
        return None

    def _run(self, index: int) -> None:
        self.result.append(index)
        for update in self.updates.get(index, ()):
            self.ahead[update] -= 1
