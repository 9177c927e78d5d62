"""The types of a node's outputs, as onnx infers them from all that is known of its inputs.

Invariant: every type is static, or the node is refused with what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper, shape_inference

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.stored import FOLDED_ELEMENTS
from remat_cli.onnx_graph.walk import static_shape


def infer_types(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], constants: Mapping[str, np.ndarray], opset: int
) -> dict[str, onnx.TypeProto]:
    """The types of the node's outputs by name."""
    known = {
        name: numpy_helper.from_array(constants[name], name)
        for name in node.input
        if name in constants and constants[name].size <= FOLDED_ELEMENTS
    }
    reads = {name: types[name] for name in node.input if name}
    schema, imports = _schema(node.op_type, opset, node.domain), [helper.make_opsetid("", opset)]
    try:
        found = shape_inference.infer_node_outputs(schema, node, reads, known, opset_imports=imports)
    except (shape_inference.InferenceError, onnx.checker.ValidationError, AttributeError, MemoryError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise BadInput(f"{node.op_type} node '{node.name}' does not fit its inputs: {reason}") from error
    for name in filter(None, node.output):
        _check_static(node, name, found.get(name))
    return {name: kind for name, kind in found.items() if name}


def _check_static(node: onnx.NodeProto, name: str, kind: onnx.TypeProto | None) -> None:
    if kind is not None and any(dim.dim_value < 0 for dim in kind.tensor_type.shape.dim):
        raise BadInput(f"'{name}' ({node.op_type} node '{node.name}') would have a dimension below zero")
    if kind is None or static_shape(kind) is None:
        raise BadInput(
            f"the shape of '{name}' ({node.op_type} node '{node.name}') is not static; "
            "bind the inputs' dimensions with --batch or --shape"
        )


_schemas: dict[tuple[str, int, str], Any] = {}


def _schema(kind: str, opset: int, domain: str) -> Any:
    key = (kind, opset, domain)
    if key not in _schemas:
        try:
            _schemas[key] = defs.get_schema(kind, opset, domain)
        except defs.SchemaError as error:
            place = f"domain '{domain}'" if domain else f"opset {opset}"
            raise BadInput(f"{kind} is not an operator of {place}") from error
    return _schemas[key]
