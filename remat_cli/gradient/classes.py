"""Finds the axis of the logits that holds the classes, where the user does not name it.

ONNX's own loss has classes on axis 1. Sequence models are the exception: their logits [batch, position, class] come
from a product, whose last axis is its features. A network of the zoo names its axis itself.

Invariant: the axis is one of the tensor's, counted from the front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from remat_cli.gradient.tensor import Tensor
from remat_cli.onnx_graph.attributes import attribute, said_in

# metadata key: the class axis of a forward model's logits; in a training graph, the axis that was used
CLASS_AXIS = "remat.class_axis"
LABELS = "labels"  # the input of a training graph that says which class is right
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
    given = said_in(model).get(CLASS_AXIS, "")
    return int(given) if given.removeprefix("-").isdigit() else None


def count_classes(model: onnx.ModelProto) -> int | None:
    """How many classes the labels of a training graph choose among, where it says the sizes."""
    makers = {output: node for node in model.graph.node for output in node.output}
    values = {value.name: value.type.tensor_type.shape.dim for value in model.graph.value_info}
    for node in model.graph.node:
        if node.op_type == "GatherElements" and _comes_from(LABELS, node.input[1], makers):
            axis = attribute(node, "axis", 0)
            return values[node.input[0]][axis].dim_value or None if node.input[0] in values else None
    return None


def _comes_from(source: str, name: str, makers: Mapping[str, onnx.NodeProto]) -> bool:
    waiting, seen = [name], set()
    while waiting:
        name = waiting.pop()
        if name == source:
            return True
        if name not in seen and name in makers:
            waiting += makers[name].input
        seen.add(name)
    return False


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
