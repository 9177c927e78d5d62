"""Values known before the graph runs: constants, shapes, and what follows from them.

Invariant: only deterministic ops on constants are folded, and never into something large: a big mask stays a node.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.gradient.tape import Tape
from remat_cli.model.semantics import RANDOM
from remat_cli.onnx_graph.attributes import attributes
from remat_cli.onnx_graph.stored import array_of, constant_tensor
from remat_cli.onnx_graph.walk import has_subgraph

FOLDED_RESULT_ELEMENTS = 1 << 20  # elements
EXPANDING = frozenset({"ConstantOfShape", "Expand", "Tile", "Range", "EyeLike", "OneHot"})


def fold(tape: Tape, node: onnx.NodeProto) -> list[np.ndarray] | None:
    """The node's outputs, if they are known."""
    if has_subgraph(node):
        return None
    if node.op_type == "Constant":
        if (held := constant_tensor(node)) is None:
            raise BadInput(f"Constant node {node.name!r} holds no tensor of numbers")
        return [array_of(held)]
    if node.op_type == "Shape" and node.domain == "":
        return [_shape(tape, node)]
    if node.op_type == "Size" and node.domain == "":
        return [np.array(np.prod(tape.shape(node.input[0]), dtype=np.int64))]
    reads = [name for name in node.input if name]
    if not reads or node.op_type in RANDOM or not all(name in tape.constants for name in reads):
        return None
    if node.op_type in EXPANDING and _size(tape, node) > FOLDED_RESULT_ELEMENTS:
        return None
    if any(tape.constants[name].size > FOLDED_RESULT_ELEMENTS for name in reads):
        return None
    if node.op_type == "ConstantOfShape":
        fill = numpy_helper.to_array(node.attribute[0].t) if node.attribute else np.zeros(1, np.float32)
        return [np.full(tuple(tape.constants[reads[0]]), fill.reshape(-1)[0], fill.dtype)]
    return _evaluate(tape, node)


def _size(tape: Tape, node: onnx.NodeProto) -> int:
    kinds = tape.infer(node).values()
    return sum(prod(dim.dim_value for dim in kind.tensor_type.shape.dim) for kind in kinds)


def _shape(tape: Tape, node: onnx.NodeProto) -> np.ndarray:
    said = attributes(node)
    return np.array(tape.shape(node.input[0])[slice(said.get("start"), said.get("end"))], np.int64)


def _evaluate(tape: Tape, node: onnx.NodeProto) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator  # late: it loads every op's implementation

    from remat_cli.onnx_graph.reference_ops import OPS

    reads = list(dict.fromkeys(name for name in node.input if name))
    graph = helper.make_graph(
        [node],
        "constant",
        [helper.make_value_info(name, tape.types[name]) for name in reads],
        [helper.make_value_info(name, onnx.TypeProto()) for name in node.output if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", tape.opset)])
    try:
        found = ReferenceEvaluator(model, new_ops=OPS).run(None, {k: tape.constants[k] for k in reads})
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{node.op_type} node {node.name!r} cannot be evaluated: {reason}") from error
    return [np.asarray(array) for array in found]
