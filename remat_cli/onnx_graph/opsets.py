"""The version of the standard operators that a model uses, and older models written in a newer one.

Invariant: a model at opset 13 or later is left as it is; older ones go through ONNX's own converter, and take and give
the same as before.
"""

from __future__ import annotations

import re

import onnx
from onnx import version_converter

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.stored import bring_in

OWN_OPSET = 13  # from here on all ops are understood as they are written
ITS_SOURCE = re.compile(r"^\S+\.(?:h|cc):\d+: \w+: Assertion `.*?` failed: ")  # which is for onnx's developers


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
        newer = version_converter.convert_version(model, OWN_OPSET)
    except (RuntimeError, version_converter.ConvertError) as error:  # its words begin with a place in its source
        reason = ITS_SOURCE.sub("", str(error).strip().splitlines()[0]).removesuffix(".")
        raise BadInput(f"the model's opset {opset_of(model)} cannot be upgraded: {reason}; export it anew") from error
    _check_faces(model, newer)
    return newer


def _check_faces(model: onnx.ModelProto, newer: onnx.ModelProto) -> None:
    """The converter takes the batch away from a Scan of opset 8, and from what the model is given for it."""
    before = {value.name: value.type for value in (*model.graph.input, *model.graph.output)}
    for value in (*newer.graph.input, *newer.graph.output):
        ranks = [_ranked(given) for given in (before.get(value.name), value.type)]
        if None not in ranks and ranks[0] != ranks[1]:  # an output's shape may be unknown before
            raise BadInput(
                f"the model's opset {opset_of(model)} cannot be upgraded: '{value.name}' would have another shape, as"
                " where a Scan has a batch; export it anew, with opset 9 or later"
            )


def _ranked(given: onnx.TypeProto | None) -> tuple[int, int] | None:
    """The type and rank, where both are said."""
    if given is None or not given.tensor_type.HasField("shape"):
        return None
    return given.tensor_type.elem_type, len(given.tensor_type.shape.dim)
