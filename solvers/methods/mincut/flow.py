"""Maximum flow in exact integers, by Dinic's algorithm, compiled.

Invariant: capacities are int64 and no arithmetic is rounded; a minimum cut below INFINITE crosses no infinite arc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.orders.compiled import entry

INFINITE = 1 << 62
Ints = NDArray[np.int64]
Integers = Sequence[int] | Ints


@dataclass(frozen=True, slots=True)
class Cut:
    """`near[v]`: vertex v is on the source's side, in the cut that lies nearest to the sink."""

    value: int
    near: NDArray[np.bool_]


def minimum_cut(count: int, tails: Integers, heads: Integers, capacities: Integers, source: int, sink: int) -> Cut:
    """The least cut between two of `count` vertices; arcs lie side by side in three columns."""
    columns = [np.asarray(column, np.int64) for column in (tails, heads, capacities)]
    start, to, residual, back = _residual_graph(count, *columns)
    value = _max_flow(start, to, residual, back, source, sink)
    return Cut(int(value), ~_reaching(start, to, residual, back, sink))


@entry
def _residual_graph(count: int, tails: Ints, heads: Ints, capacities: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Arcs by tail, each with the place of its reverse."""
    start = np.zeros(count + 1, np.int64)
    for arc in range(tails.size):
        start[tails[arc] + 1] += 1
        start[heads[arc] + 1] += 1
    for vertex in range(count):
        start[vertex + 1] += start[vertex]
    free = start[:-1].copy()
    to = np.empty(2 * tails.size, np.int64)
    residual = np.zeros(2 * tails.size, np.int64)
    back = np.empty(2 * tails.size, np.int64)
    for arc in range(tails.size):
        one, two = free[tails[arc]], free[heads[arc]]
        if tails[arc] == heads[arc]:
            two += 1
        to[one], residual[one], back[one] = heads[arc], capacities[arc], two
        to[two], residual[two], back[two] = tails[arc], 0, one
        free[tails[arc]] += 1
        free[heads[arc]] += 1
    return start, to, residual, back


@entry
def _max_flow(
    start: Ints,
    to: Ints,
    residual: Ints,
    back: Ints,
    source: int,
    sink: int,
) -> int:
    count = start.size - 1
    level = np.empty(count, np.int64)
    queue = np.empty(count, np.int64)
    path = np.empty(count, np.int64)  # arcs from the source to where the search stands
    total = 0
    while _levels(start, to, residual, source, sink, level, queue):
        place = start[:-1].copy()
        depth, vertex = 0, source
        while True:
            if vertex == sink:
                pushed = INFINITE
                for step in range(depth):
                    pushed = min(pushed, residual[path[step]])
                retreat = depth
                for step in range(depth - 1, -1, -1):
                    arc = path[step]
                    if residual[arc] < INFINITE:  # an infinite arc stays infinite
                        residual[arc] -= pushed
                    residual[back[arc]] = min(INFINITE, residual[back[arc]] + pushed)
                    if residual[arc] == 0:
                        retreat = step
                total += pushed
                if pushed == INFINITE:
                    return INFINITE
                depth = retreat
                vertex = to[back[path[depth]]]
                continue
            advanced = False
            while place[vertex] < start[vertex + 1]:
                arc = place[vertex]
                if residual[arc] > 0 and level[to[arc]] == level[vertex] + 1:
                    path[depth] = arc
                    depth += 1
                    vertex = to[arc]
                    advanced = True
                    break
                place[vertex] += 1
            if advanced:
                continue
            if depth == 0:
                break
            depth -= 1
            vertex = to[back[path[depth]]]
            place[vertex] += 1
    return total


@entry
def _levels(
    start: Ints,
    to: Ints,
    residual: Ints,
    source: int,
    sink: int,
    level: Ints,
    queue: Ints,
) -> bool:
    """Distances from the source over arcs with room; whether the sink can be reached."""
    level[:] = -1
    level[source] = 0
    queue[0] = source
    first, last = 0, 1
    while first < last:
        vertex = queue[first]
        first += 1
        for arc in range(start[vertex], start[vertex + 1]):
            if residual[arc] > 0 and level[to[arc]] < 0:
                level[to[arc]] = level[vertex] + 1
                queue[last] = to[arc]
                last += 1
    return bool(level[sink] >= 0)


@entry
def _reaching(start: Ints, to: Ints, residual: Ints, back: Ints, sink: int) -> NDArray[np.bool_]:
    """The vertices from which the sink can still be reached: the sink's side of the nearest cut."""
    found = np.zeros(start.size - 1, np.bool_)
    queue = np.empty(start.size - 1, np.int64)
    found[sink] = True
    queue[0] = sink
    first, last = 0, 1
    while first < last:
        vertex = queue[first]
        first += 1
        for arc in range(start[vertex], start[vertex + 1]):
            tail = to[arc]
            if residual[back[arc]] > 0 and not found[tail]:
                found[tail] = True
                queue[last] = tail
                last += 1
    return found
