"""Empty slices of what is computed: one of a result that nobody reads lets the session free it there.

Invariant: such a slice takes no memory and is computed where its value is; the graph without them is as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from remat_cli.model.graph import Graph
from remat_cli.rewrite.copies import CopyNames, EmittedNode

SLICED = {*range(onnx.TensorProto.FLOAT, onnx.TensorProto.UINT64 + 1), onnx.TensorProto.BFLOAT16}  # kernels exist


def free_unread(
    graph: Graph, steps: Sequence[EmittedNode], names: CopyNames
) -> tuple[list[EmittedNode], list[onnx.TensorProto]]:
    """The steps with an empty slice of every result that nobody reads, which may go then, and the constant for it."""
    zero = zero_of(names)
    read = names_read(graph, steps)
    body: list[EmittedNode] = []
    for step in steps:
        body.append(step)
        for value in to_slice(graph, step, False, read):
            body += empty_slice(graph, step, value, zero.name, names)
    return body, [zero] if len(body) > len(steps) else []


def to_slice(graph: Graph, step: EmittedNode, stray: bool, read: set[str]) -> list[str]:
    """Every result that nobody reads, so that it can go; else, where the walk strays, the smallest result."""
    usable = can_be_sliced(graph, step)
    unread = [name for name in usable if name not in read]
    if unread or not stray:
        return unread
    return sorted(usable, key=lambda name: graph.values[step.origin[name]].bytes)[:1]


def can_be_sliced(graph: Graph, step: EmittedNode) -> list[str]:
    known = [name for name in step.node.output if name and step.origin.get(name, "") in graph.values]
    return [name for name in known if graph.values[step.origin[name]].dtype in SLICED]


def names_read(graph: Graph, steps: Sequence[EmittedNode]) -> set[str]:
    return set(graph.outputs).union(name for step in steps for name in step.reads)


def zero_of(names: CopyNames) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(1, dtype=np.int64), names.copy("__zero", 1))


def empty_slice(graph: Graph, step: EmittedNode, value: str, zero: str, names: CopyNames) -> list[EmittedNode]:
    tensor, read = graph.values[step.origin[value]], value
    steps: list[EmittedNode] = []
    if not tensor.shape:
        told = tensor.dtype, (1,)
        steps.append(names.added("Unsqueeze", [read], f"{value}__flat", constants=[zero], told=told))
        read = steps[-1].made
    slices = tensor.dtype, (0, *tensor.shape[1:])
    return [*steps, names.added("Slice", [read], f"{value}__token", constants=[zero, zero], told=slices)]
