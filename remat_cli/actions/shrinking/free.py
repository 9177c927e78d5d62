"""A model whose dimensions stay free, as it was given.

Invariant: its ops are those that were planned at one size; whoever keeps it has run it at others.
"""

from __future__ import annotations

import onnx


def freed(model: onnx.ModelProto, given: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the dimensions that inputs and outputs were given with, and no sizes in between."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    types = {value.name: value.type for value in (*given.graph.input, *given.graph.output)}
    for value in (*made.graph.input, *made.graph.output):
        if value.name in types:
            value.type.CopyFrom(types[value.name])
    del made.graph.value_info[:]
    return made
