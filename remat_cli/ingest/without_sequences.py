"""Replaces the sequences of a model's main graph by tensors.

Invariant: all sequences are replaced or none; the results are the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper

from remat_cli.onnx_graph.sequences import WRITERS, CannotWriteOut, SequenceWriter
from remat_cli.onnx_graph.stored import FOLDED_ELEMENTS, constant_tensor
from remat_cli.onnx_graph.walk import captures, static_shape


@dataclass(slots=True)
class _Inferred:
    """The types that onnx infers for the model's values, and the initializers that replacing sequences adds."""

    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, np.ndarray]
    stored: list[onnx.TensorProto] = field(default_factory=list)

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        return self.shapes.get(name)

    def constant_of(self, name: str) -> np.ndarray | None:
        return self.constants.get(name)

    def store(self, name: str, content: np.ndarray) -> str:
        self.stored.append(numpy_helper.from_array(content, name))
        return name

    def alias(self, name: str) -> str:
        return name

    def new_name(self, stem: str) -> str:
        return stem


def write_out(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without sequences; the same object where there are none, or some have to stay."""
    if not any(node.op_type in WRITERS for node in model.graph.node):
        return model
    known = _Inferred(_shapes(model), _constants(model))
    writer = SequenceWriter(known)
    nodes: list[onnx.NodeProto] = []
    try:
        for node in model.graph.node:
            if node.op_type == "SplitToSequence" and node.input[0] not in known.shapes:
                # onnx infers more once the sequences are gone
                known.shapes |= _shapes(_with(nodes, writer, known, model))
            nodes += _replace(node, writer)
    except (CannotWriteOut, IndexError, ValueError):
        return model
    if not writer.parts or any(output.name in writer.parts for output in model.graph.output):
        return model
    return _with(nodes, writer, known, model)


def _replace(node: onnx.NodeProto, writer: SequenceWriter) -> list[onnx.NodeProto]:
    if writer.takes(node):
        return list(writer.write(node))
    if any(name in writer.parts for name in (*node.input, *captures(node))):
        raise CannotWriteOut("an op reads a sequence as a whole")
    return [node]


def _with(
    nodes: Sequence[onnx.NodeProto], writer: SequenceWriter, known: _Inferred, model: onnx.ModelProto
) -> onnx.ModelProto:
    """The model with these nodes in place of its own."""
    changed = deepcopy(model)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    changed.graph.initializer.extend(known.stored)
    tensors = [value for value in changed.graph.value_info if value.name not in writer.parts]
    del changed.graph.value_info[:]
    changed.graph.value_info.extend(tensors)
    return changed


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*graph.value_info, *graph.input, *graph.output)
    return {value.name: shape for value in values if (shape := static_shape(value.type)) is not None}


def _constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    tensors = [(tensor.name, tensor) for tensor in model.graph.initializer]
    made = ((node.output[0], constant_tensor(node)) for node in model.graph.node if node.op_type == "Constant")
    tensors += [(name, tensor) for name, tensor in made if tensor is not None]
    return {
        name: numpy_helper.to_array(tensor)
        for name, tensor in tensors
        if tensor.data_type == onnx.TensorProto.INT64
        and np.prod(tensor.dims) <= FOLDED_ELEMENTS
        and tensor.data_location != onnx.TensorProto.EXTERNAL
    }
