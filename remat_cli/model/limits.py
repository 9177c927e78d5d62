"""What a file may ask of its reader, in one table: a file beyond any of these is bad input, whatever it is.

Invariant: every reader of something that others made holds itself to these before it does what they bound.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

MODEL_BYTES = 2**31 - 1  # of an ONNX file without its external data: the limit of its encoding
TEXT_BYTES = 2**28  # of a plan or a problem file
DEPTH = 50  # of objects and lists within each other
FUNCTION_NODES = 1_000_000  # of a model whose functions are written out
TENSOR_BYTES = 2**50  # of one value
# A cost file: profiles/costs.py. Numbers of a problem: solvers/problem.py.


def below_zero(graph: onnx.GraphProto) -> bool:
    """Whether the graph declares a dimension that onnx's own inference would stumble over."""
    named = (*graph.input, *graph.output, *graph.value_info)
    sizes = [dim.dim_value for value in named for dim in value.type.tensor_type.shape.dim]
    return min((*sizes, *(size for tensor in graph.initializer for size in tensor.dims)), default=0) < 0


def written_out(model: onnx.ModelProto) -> int:
    """How many nodes the model has once its functions are written out, as far as the limit; beyond it for a circle."""
    bodies = {(function.domain, function.name, function.overload): function.node for function in model.functions}
    known: dict[tuple[str, str, str], int] = {}
    waiting = list(bodies)
    while waiting:
        name = waiting[-1]
        calls = [call for call in _names(bodies[name]) if call in bodies]
        missing = [call for call in calls if call not in known]
        if len(waiting) > len(bodies) * (len(bodies) + 1):
            return FUNCTION_NODES + 1  # functions that call each other in a circle
        if missing:
            waiting += missing
            continue
        known[name] = min(_total(bodies[name], known), FUNCTION_NODES + 1)
        waiting.pop()
    return _total(model.graph.node, known)


def _total(nodes: Iterable[onnx.NodeProto], known: dict[tuple[str, str, str], int]) -> int:
    return sum(known.get(name, 1) for name in _names(nodes))


def _names(nodes: Iterable[onnx.NodeProto]) -> list[tuple[str, str, str]]:
    found = []
    for node in nodes:
        found.append((node.domain, node.op_type, node.overload))
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                found += _names(graph.node)
    return found
