"""The nodes of a graph with those of its subgraphs, what passes between the two, the shapes told of values, and the
orders in which onnxruntime runs them: by default, and in the strict session.

Invariant: nothing here knows what an op does; a subgraph is what stands in an attribute of that type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

import onnx

GRAPH_ATTRIBUTES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
Reads = Sequence[Collection[int]]  # for each node, in file order, the nodes that it reads


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The bodies of a loop, the branches of an If."""
    for attribute in node.attribute:
        kind = attribute.type
        if kind == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif kind in (onnx.AttributeProto.GRAPHS, onnx.AttributeProto.UNDEFINED):
            yield from attribute.graphs


def has_subgraph(node: onnx.NodeProto) -> bool:
    return bool([attribute for attribute in node.attribute if attribute.type in GRAPH_ATTRIBUTES])  # quicker than any()


def nodes_within(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes, each followed by those of its subgraphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from nodes_within(graph.node)


def captures(node: onnx.NodeProto) -> tuple[str, ...]:
    """Outer values that the node's subgraphs read."""
    graphs = list(subgraphs(node))
    return tuple(dict.fromkeys(name for graph in graphs for name in _free_names(graph))) if graphs else ()


def leading_to(nodes: Sequence[onnx.NodeProto], values: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes that the values are computed from, in order."""
    needed, found = set(values), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            needed.update((*node.input, *captures(node)))
            found.append(node)
    return found[::-1]


def _free_names(graph: onnx.GraphProto) -> Iterator[str]:
    known = {*(value.name for value in graph.input), *names_stored(graph)}
    for node in graph.node:
        for name in (*node.input, *captures(node)):
            if name and name not in known:
                yield name
        known.update(node.output)
    for value in graph.output:
        if value.name and value.name not in known:
            yield value.name


def names_stored(graph: onnx.GraphProto) -> list[str]:
    """The names of the tensors that the graph stores, as often as it does."""
    return [*(tensor.name for tensor in graph.initializer), *(one.values.name for one in graph.sparse_initializer)]


def static_shape(kind: onnx.TypeProto) -> tuple[int, ...] | None:
    """The sizes of a tensor of this type, where the type tells them all."""
    if not kind.tensor_type.HasField("shape"):
        return None
    sizes = kind.tensor_type.shape.dim
    return tuple(dim.dim_value for dim in sizes) if all(dim.HasField("dim_value") for dim in sizes) else None


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
    """The order that runs, of the nodes that are ready, the one of least rank; of equals the first in the file.

    Nodes that wait for each other, and what reads them, are left out.
    """
    needs = [set(sources) for sources in reads]
    waiting = [len(sources) for sources in needs]
    readers: list[list[int]] = [[] for _ in reads]
    for index, sources in enumerate(needs):
        for source in sources:
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
