"""Orders in which what takes most room waits until the end: all else runs first, with more room.

Near the least memory a few ops need nearly the whole budget for themselves. Nearly nothing can be held across them, so
that much is computed again after them. Often they make something that little else reads, such as the gradient of a
weight. At the end there is nothing left that would have to be computed again for anything but them.

Invariant: each order is legal and runs every node once.
"""

from __future__ import annotations

from collections.abc import Iterator

from solvers.orders.bounds import list_needs
from solvers.problem import Problem

_WIDE = 1 / 2  # share of the room that an op needs for itself to be put off
_SIDE = 1 / 16  # of the cost of everything, at most, for what an op leads to
_IN_ALL = 1 / 2  # of that cost, at most, for all that is put off


def orders_with_wide_last(problem: Problem, budget: int) -> Iterator[list[int]]:
    """The first puts off what leads from the widest op, each further one what leads from the next widest as well."""
    nodes, needs = problem.nodes, list_needs(problem)
    total = sum(node.cost for node in nodes)
    follows = _Follows(problem)
    least = problem.resident + (budget - problem.resident) * _WIDE
    late, known = set[int](), 0
    for index in sorted(range(len(nodes)), key=lambda index: (-needs[index], index)):
        if needs[index] < least:
            return
        more = follows.after(index)
        if index in late or sum(nodes[node].cost for node in more) > _SIDE * total:
            continue
        late = follows.with_makers(late | more)
        if sum(nodes[node].cost for node in late) > _IN_ALL * total:
            return
        if len(late) > known:
            known = len(late)
            yield [*(node for node in range(len(nodes)) if node not in late), *sorted(late)]


class _Follows:
    def __init__(self, problem: Problem) -> None:
        self.outputs = frozenset(problem.outputs)
        readers = problem.readers()
        self.readers = [{reader for value in node.writes for reader in readers[value]} for node in problem.nodes]
        self.is_asked = [not self.outputs.isdisjoint(node.writes) for node in problem.nodes]

    def after(self, index: int) -> set[int]:
        """The node and all that needs it, directly or not."""
        found, stack = {index}, [index]
        while stack:
            new = self.readers[stack.pop()] - found
            found |= new
            stack += new
        return found

    def with_makers(self, late: set[int]) -> set[int]:
        """These, and what is made for them alone."""
        found = set(late)
        for index in range(len(self.readers) - 1, -1, -1):
            if self.readers[index] and self.readers[index] <= found and not self.is_asked[index]:
                found.add(index)
        return found
