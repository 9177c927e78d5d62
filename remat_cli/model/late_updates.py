"""Steps of other programs that write new state before all ops of their file have read the old: a better order of them.

Invariant: the ops are the same, and each comes after those whose results it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush

from remat_cli.model.graph import Graph
from remat_cli.model.in_place import InPlace, readers_of, wanted_updates


def hold_back(graph: Graph, asked: InPlace) -> Graph:
    """The graph with each update after what reads the old value, where that is possible; all else as in the file."""
    waits = _waits(graph, wanted_updates(graph, asked))
    if all(reader < index for index, readers in waits.items() for reader in readers):
        return graph
    return replace(graph, ops=tuple(graph.ops[index] for index in _order(graph, waits)))


def _waits(graph: Graph, pairs: Mapping[str, str]) -> dict[int, set[int]]:
    """For each op that updates inputs, the others that read them."""
    place = {name: index for index, op in enumerate(graph.ops) for name in op.writes}
    readers, found = readers_of(graph), dict[int, set[int]]()
    for output, old in pairs.items():
        if output in place:
            found.setdefault(place[output], set()).update(readers.get(old, ()))
    return {index: others - {index} for index, others in found.items()}


def _order(graph: Graph, waits: Mapping[int, set[int]]) -> list[int]:
    """Of the ops that could run, the first in the file. Where updates wait for each other, the first op goes on."""
    place = {name: index for index, op in enumerate(graph.ops) for name in op.writes}
    sources = [{place[name] for name in op.reads if name in place} for op in graph.ops]
    missing = [source | waits.get(index, set()) for index, source in enumerate(sources)]
    after: list[list[int]] = [[] for _ in graph.ops]
    for index, others in enumerate(missing):
        for other in others:
            after[other].append(index)
    ready, order = [index for index, others in enumerate(missing) if not others], list[int]()
    heapify(ready)
    ran = [False] * len(graph.ops)
    while len(order) < len(graph.ops):
        if not ready:
            ready = [next(k for k, source in enumerate(sources) if not ran[k] and all(ran[one] for one in source))]
        index = heappop(ready)
        if ran[index]:
            continue
        ran[index] = True
        order.append(index)
        for reader in after[index]:
            missing[reader].discard(index)
            if not missing[reader] and not ran[reader]:
                heappush(ready, reader)
    return order
