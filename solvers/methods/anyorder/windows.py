"""Pivots and windows: the groups of time in which each node can first run, in every order.

Pivots p1 < ... < pG lie on one path of the graph, so every schedule first computes them in that order. Group g is the
time after the first compute of p_g, up to and with that of p_(g+1); group 0 ends with p1, group G with the schedule.

Invariant: in every legal order, with whatever repeats, each node first runs in a group of its window.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.exact.grouped import Windows
from solvers.orders.arrays import Ints
from solvers.problem import Problem


def windows_of(problem: Problem, writer: Sequence[int], pivots: Sequence[int]) -> Windows:
    """The window of each node: after the last pivot that it needs, before the first that needs it."""
    place = {pivot: g for g, pivot in enumerate(sorted(pivots))}
    count, last = len(problem.nodes), len(place)
    low, high = [0] * count, [last] * count
    for index, node in enumerate(problem.nodes):
        for value in node.reads:
            source = writer[value]
            low[index] = max(low[index], place[source] + 1 if source in place else low[source])
    for index in range(count - 1, -1, -1):
        high[index] = place.get(index, high[index])
        for value in problem.nodes[index].reads:
            source = writer[value]
            high[source] = min(high[source], high[index])
    low[-1] = high[-1] = last
    return Windows(tuple(sorted(place)), tuple(low), tuple(high))


def heaviest_path(problem: Problem, writer: Sequence[int], weights: Sequence[int] | Ints) -> list[int]:
    """The path of the greatest weight in all, each node of which needs the one before, without the last node."""
    total = [int(weight) for weight in weights]
    before = [-1] * len(total)
    for index, node in enumerate(problem.nodes):
        sources = {writer[value] for value in node.reads}
        if sources:
            before[index] = max(sources, key=lambda source: (total[source], source))
            total[index] += total[before[index]]
    at = max(range(len(total) - 1), key=lambda index: (total[index], index), default=-1)
    path: list[int] = []
    while at >= 0:
        path.append(at)
        at = before[at]
    return path[::-1]
