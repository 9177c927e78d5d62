"""Finds the axis of the logits that holds the classes, where the user does not name it.

ONNX's own loss has classes on axis 1. Sequence models are the exception: their logits [batch, position, class] come
from a product, whose last axis is its features. A network of the zoo names its axis itself.

Invariant: the axis is one of the tensor's, counted from the front.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from remat_cli.gradient.tensor import Tensor

# metadata key: the class axis of a forward model's logits; in a training graph, the axis that was used
CLASS_AXIS = "remat.class_axis"
PASSING_OPS = {  # ops between the product and the logits that leave the feature axis in place
    *("Add", "Cast", "Clip", "Div", "Dropout", "Expand", "Identity", "LogSoftmax", "Max", "Min", "Mul", "Reshape"),
    *("Sigmoid", "Slice", "Softmax", "Squeeze", "Sub", "Tanh", "Unsqueeze", "Where"),
}


def class_axis(logits: Tensor, nodes: Sequence[onnx.NodeProto]) -> int:
    """The axis by rank: 1, or the last axis where a product makes the logits of sequences."""
    if logits.rank != 3:
        return min(1, logits.rank - 1)
    return 2 if _is_product(logits, nodes) else 1


def named_class_axis(model: onnx.ModelProto) -> int | None:
    """The axis that the model itself names."""
    given = {entry.key: entry.value for entry in model.metadata_props}.get(CLASS_AXIS, "")
    return int(given) if given.removeprefix("-").isdigit() else None


def _is_product(logits: Tensor, nodes: Sequence[onnx.NodeProto]) -> bool:
    makers = {output: node for node in nodes for output in node.output}
    waiting, seen = [logits.name], set()
    while waiting:
        node = makers.get(waiting.pop())
        if node is None or node.output[0] in seen:
            continue
        if node.op_type in ("MatMul", "Gemm"):
            return True
        seen.add(node.output[0])
        if node.op_type in PASSING_OPS:
            waiting += [name for name in node.input if name and logits.tape.shape(name)[-1:] == logits.shape[-1:]]
    return False
