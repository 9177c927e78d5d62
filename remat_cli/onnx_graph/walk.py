"""The nodes of a graph with those of its subgraphs, what passes between the two, and the shapes told of values.

Invariant: nothing here knows what an op does; a subgraph is what stands in an attribute of that type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

GRAPH_ATTRIBUTES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


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
