"""The orders in which onnxruntime runs a graph's nodes: by default, and in the strict session.

Invariant: each is a permutation of the nodes in which every node comes after those it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

Reads = Sequence[Sequence[int]]  # for each node, in file order, the nodes that it reads


def default_order(reads: Reads) -> list[int]:
    """The walk of onnxruntime's GraphViewer: depth first, back from the nodes that no node reads.

    Of those the one that stands last in the file comes first, and so does of a node's reads the one that stands last.
    """
    read = {index for sources in reads for index in sources}
    order: list[int] = []
    visited = [False] * len(reads)
    stack = [(index, False) for index in range(len(reads)) if index not in read]
    while stack:
        index, leaving = stack.pop()
        if leaving:
            order.append(index)
        elif not visited[index]:
            visited[index] = True
            stack.append((index, True))
            stack.extend((source, False) for source in sorted(set(reads[index])) if not visited[source])
    return order


def strict_order(reads: Reads, op_types: Sequence[str]) -> list[int]:
    """PRIORITY_BASED: of the nodes that could run, the first in the file; Shape and Size before all others."""
    return by_rank(reads, [int(op_type not in ("Shape", "Size")) for op_type in op_types])


def by_rank(reads: Reads, ranks: Sequence[float]) -> list[int]:
    """The order that runs, of the nodes that are ready, the one of least rank; of equals the first in the file."""
    waiting = [len(set(sources)) for sources in reads]
    readers: list[list[int]] = [[] for _ in reads]
    for index, sources in enumerate(reads):
        for source in set(sources):
            readers[source].append(index)
    ready = [(ranks[index], index) for index, count in enumerate(waiting) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, index = heappop(ready)
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, (ranks[reader], reader))
    return order


def edges(reads: Sequence[Sequence[str]], writes: Sequence[Sequence[str]]) -> list[list[int]]:
    """For each node the indices of those it reads, from the names of what each reads and writes."""
    writer = {name: index for index, names in enumerate(writes) for name in names if name}
    return [[writer[name] for name in names if name in writer] for names in reads]
