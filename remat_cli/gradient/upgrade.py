"""Upgrades older opsets to the one that gradients are written in.

Invariant: a model at opset 13 or later is changed node by node here; only older ones go through ONNX's converter.
"""

from __future__ import annotations

import re

import onnx
from onnx import helper, version_converter

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.stored import bring_in

LEAST_OPSET = 18  # here reductions take their axes as an input, and ScatterElements can add
OWN_OPSET = 13  # from here on, `modernize` is enough
ITS_SOURCE = re.compile(r"^\S+\.(?:h|cc):\d+: \w+: Assertion `.*?` failed: ")  # which is for onnx's developers
REDUCTIONS = frozenset(
    f"Reduce{kind}" for kind in ("Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
)


def opset_of(model: onnx.ModelProto) -> int:
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions:
        raise BadInput("the model imports no standard opset, so it cannot be differentiated")
    return int(versions[0])


def upgrade(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model at an opset of at least `OWN_OPSET`."""
    if opset_of(model) >= OWN_OPSET:
        return model
    for tensor in model.graph.initializer:
        bring_in(tensor)  # the converter turns some inputs into attributes, and some attributes into inputs
    try:
        return version_converter.convert_version(model, OWN_OPSET)
    except (RuntimeError, version_converter.ConvertError) as error:
        reason = ITS_SOURCE.sub("", str(error).strip().splitlines()[0]).removesuffix(".")
        raise BadInput(f"the model's opset {opset_of(model)} cannot be upgraded: {reason}; export it anew") from error


def modernize(node: onnx.NodeProto, opset: int) -> tuple[list[onnx.NodeProto], onnx.NodeProto]:
    """A node of an opset from 13 to 17 as later ones write it: constants to define first, and the node."""
    if opset >= LEAST_OPSET:
        return [], node
    if node.op_type in REDUCTIONS:
        return _axes_as_input(node)
    if node.op_type == "Split" and len(node.input) < 2:
        changed = _copy(node)
        changed.attribute.append(helper.make_attribute("num_outputs", len(node.output)))
        return [], changed
    return [], node


def _axes_as_input(node: onnx.NodeProto) -> tuple[list[onnx.NodeProto], onnx.NodeProto]:
    axes = [attribute for attribute in node.attribute if attribute.name == "axes"]
    if not axes:
        return [], node
    changed = _copy(node)
    changed.attribute.remove(axes[0])
    name = f"{node.output[0]}/axes"
    changed.input.append(name)
    return [helper.make_node("Constant", [], [name], value_ints=list(axes[0].ints))], changed


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    return changed
