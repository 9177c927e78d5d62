"""A training step without its nodes: all that a state is bound to.

Invariant: the frame of a frame is the same, and it holds no memory of the step's own.
"""

from __future__ import annotations

import onnx

from remat_cli.gradient.classes import count_classes, named_class_axis
from remat_cli.gradient.optimizers import RATE
from remat_cli.onnx_graph.metadata import said_in

CLASSES = "remat.classes"  # metadata key: how many classes labels choose among


def frame_of(step: onnx.ModelProto) -> onnx.ModelProto:
    """Its inputs, outputs, default learning rate and metadata, with the number of its classes among these."""
    frame = onnx.ModelProto(ir_version=step.ir_version)
    frame.opset_import.extend(step.opset_import)
    frame.metadata_props.extend(step.metadata_props)
    frame.graph.name = step.graph.name
    frame.graph.input.extend(step.graph.input)
    frame.graph.output.extend(step.graph.output)
    frame.graph.initializer.extend(tensor for tensor in step.graph.initializer if tensor.name == RATE)
    if named_class_axis(step) is not None and classes_of(step) is None and (count := count_classes(step)):
        frame.metadata_props.add(key=CLASSES, value=str(count))
    return frame


def classes_of(frame: onnx.ModelProto) -> int | None:
    """How many classes labels choose among, where that is known."""
    said = said_in(frame).get(CLASSES, "")
    return int(said) if said.isdigit() else None
