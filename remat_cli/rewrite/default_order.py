"""The order in which onnxruntime runs a graph's nodes by default.

Invariant: a permutation of the nodes, each after those it reads. It is the walk of onnxruntime's GraphViewer: depth
first, back from the nodes whose outputs no node reads, the one that stands last in the file first; from each node to
the one it reads that stands last in the file first.
"""

from __future__ import annotations

from collections.abc import Sequence

Reads = Sequence[Sequence[int]]  # for each node, the nodes that it reads


def default_order(reads: Reads) -> list[int]:
    """The nodes' indices in the order in which they run."""
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


def edges(reads: Sequence[Sequence[str]], writes: Sequence[Sequence[str]]) -> list[list[int]]:
    """For each node the indices of those it reads, from the names of what each reads and writes."""
    writer = {name: index for index, names in enumerate(writes) for name in names if name}
    return [[writer[name] for name in names if name in writer] for names in reads]
