"""An order brought as near to that of the graph as its memory allows, so that equal layers have equal neighbours.

Inductor writes a function of C++ for kernels that follow each other, and compiles equal functions once. Where a search
has placed the ops of equal layers in different ways, for no byte of the peak, each layer has functions of its own.

Invariant: the same computes, each with the same results to read, and no more memory at the peak. An exchange that holds
more than that in between is not made, so an order that is good for its peak stays one.
"""

from __future__ import annotations

from collections.abc import Sequence

from remat_cli.torch.remembering import Order
from solvers.problem import Node, Problem
from solvers.schedule import evaluate

Key = tuple[int, int, int]


def alike(problem: Problem, order: Order) -> Order:
    """The order with neighbours exchanged for as long as that brings both nearer to their places in the graph."""
    peak = evaluate(problem, order)[1].peak
    state = _Sorting(problem, order, peak)
    while state.sweep():
        pass
    found = tuple(state.order)
    return found if evaluate(problem, found)[1].peak <= peak else order


class _Sorting:
    """An order on its way. `live`: the bytes before each step. `last`: the values that nothing reads after it."""

    def __init__(self, problem: Problem, order: Sequence[int], limit: int) -> None:
        self.problem, self.order, self.limit = problem, list(order), limit
        self.keys = keys(problem, order)
        self.last = last_uses(problem, order)
        self.live = [problem.resident]
        for place, op in enumerate(order):
            self.live.append(self.live[-1] + self.bytes(problem.nodes[op].writes) - self.bytes(self.last[place]))

    def bytes(self, values: Sequence[int]) -> int:
        sizes = self.problem.sizes
        return sum([sizes[value] for value in values])

    def sweep(self) -> bool:
        """Take each compute to the front as far as it goes. Whether any moved."""
        moved = False
        for place in range(1, len(self.order)):
            while place and self.keys[place] < self.keys[place - 1] and self.exchange(place - 1):
                place, moved = place - 1, True
        return moved

    def exchange(self, place: int) -> bool:
        """Exchange two neighbours, if that is the same plan and holds no more than it may."""
        one, two = self.order[place], self.order[place + 1]
        first, second = self.problem.nodes[one], self.problem.nodes[two]
        if one == two or _bound(first, second):
            return False
        ending = {*self.last[place], *self.last[place + 1]}
        own = [value for value in ending if value in second.reads or value in second.writes]
        early = [value for value in own if value not in first.reads and value not in first.writes]
        start = self.live[place]
        between = start + self.bytes(second.writes) - self.bytes(early)
        most = max(
            start + self.bytes(second.writes) + second.workspace, between + self.bytes(first.writes) + first.workspace
        )
        if most > self.limit:
            return False
        self.order[place], self.order[place + 1] = two, one
        self.keys[place], self.keys[place + 1] = self.keys[place + 1], self.keys[place]
        self.last[place], self.last[place + 1] = early, [value for value in ending if value not in early]
        self.live[place + 1] = between
        return True


def _bound(first: Node, second: Node) -> bool:
    """Whether the second of two neighbours must stay behind the first."""
    if first.overwrites or second.overwrites:
        return True
    touched = {*second.reads, *second.writes}
    return not touched.isdisjoint(first.writes) or not set(first.reads).isdisjoint(second.writes)


def last_uses(problem: Problem, order: Sequence[int]) -> list[list[int]]:
    """For each step the values that are in memory during it and not after it."""
    kept = set(problem.outputs)
    found: list[list[int]] = [[] for _ in order]
    wanted = set(kept)
    for place in range(len(order) - 1, -1, -1):
        node = problem.nodes[order[place]]
        found[place] = [value for value in dict.fromkeys((*node.reads, *node.writes)) if value not in wanted]
        wanted.update(node.reads)
        wanted.difference_update(node.writes)
    return found


def keys(problem: Problem, order: Sequence[int]) -> list[Key]:
    """Where each compute belongs: an op's first at its place in the graph, a later one before the first op that reads
    it."""
    first = {op: place for place, op in reversed(list(enumerate(order)))}
    reader: dict[int, Key] = {}
    found: list[Key] = [(0, 0, 0)] * len(order)
    for place in range(len(order) - 1, -1, -1):
        op = order[place]
        node = problem.nodes[op]
        asked = [reader[value] for value in node.writes if value in reader]
        again = first[op] != place and asked
        found[place] = (min(asked)[0], 0, op) if again else (op, 1, op)
        for value in node.writes:
            reader.pop(value, None)
        for value in node.reads:
            reader[value] = min(found[place], reader.get(value, found[place]))
    return found
