"""Nodes of opsets from 13 on, as the opset that gradients are written in has them."""

from __future__ import annotations

from copy import deepcopy

import onnx
from onnx import helper

LEAST_OPSET = 18  # here reductions take their axes as an input, and ScatterElements can add
REDUCTIONS = frozenset(
    f"Reduce{kind}" for kind in ("Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
)


def modernize(node: onnx.NodeProto, opset: int) -> tuple[list[onnx.NodeProto], onnx.NodeProto]:
    """A node of an opset from 13 to 17 as later ones write it: constants to define first, and the node."""
    if opset >= LEAST_OPSET:
        return [], node
    if node.op_type in REDUCTIONS:
        return _axes_as_input(node)
    if node.op_type == "Split" and len(node.input) < 2:
        changed = deepcopy(node)
        changed.attribute.append(helper.make_attribute("num_outputs", len(node.output)))
        return [], changed
    return [], node


def _axes_as_input(node: onnx.NodeProto) -> tuple[list[onnx.NodeProto], onnx.NodeProto]:
    axes = [attribute for attribute in node.attribute if attribute.name == "axes"]
    if not axes:
        return [], node
    changed = deepcopy(node)
    changed.attribute.remove(axes[0])
    name = f"{node.output[0]}/axes"
    changed.input.append(name)
    return [helper.make_node("Constant", [], [name], value_ints=list(axes[0].ints))], changed
