"""The version of the standard operators that a model uses, and older models written in a newer one.

Invariant: a model at opset 13 or later is left as it is; older ones go through ONNX's own converter.
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
        return version_converter.convert_version(model, OWN_OPSET)
    except (RuntimeError, version_converter.ConvertError) as error:  # its words begin with a place in its source
        reason = ITS_SOURCE.sub("", str(error).strip().splitlines()[0]).removesuffix(".")
        raise BadInput(f"the model's opset {opset_of(model)} cannot be upgraded: {reason}; export it anew") from error
