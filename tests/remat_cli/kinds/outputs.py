"""Outputs that are no op's own result, and values that are no plain tensors of known shape."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.remat_cli.kinds.chain import FLOAT, Chain, Twist


def returned(name: str) -> Twist:
    def twist(chain: Chain, value: str) -> str:
        chain.returns(name)
        return value

    return twist


def copied_weight(chain: Chain, value: str) -> str:
    chain.returns(chain.add("Identity", ["w0"]))
    return value


def constant(chain: Chain, value: str) -> str:
    chain.returns(chain.add("Constant", [], value=chain.weights["w0"]))
    return value


def twice(chain: Chain, value: str) -> str:
    made = chain.add("Exp", [value])
    chain.returns(made)
    chain.returns(made)
    return chain.add("Neg", [made])


def activation(chain: Chain, value: str) -> str:
    chain.returns(value)
    return chain.add("Neg", [value])


def view(chain: Chain, value: str) -> str:
    chain.returns(chain.add("Reshape", [value, chain.shape(chain.width, chain.rows)]))
    return value


def unread(chain: Chain, value: str) -> str:
    """Half of a Split, and the indices of a TopK, are read by nobody."""
    largest = chain.add("TopK", [value, chain.shape(chain.width)], 2, axis=1)
    chain.add("Split", [largest], 2, num_outputs=2, axis=1)
    return chain.add("Concat", [chain.last[1], chain.last[1]], axis=1)


def words(chain: Chain, value: str) -> str:
    chain.inputs.append(helper.make_tensor_value_info("words", TensorProto.STRING, [4]))
    chain.returns(chain.add("Identity", ["words"]), TensorProto.STRING)
    return value


def sequence(chain: Chain, value: str) -> str:
    held = chain.add("SequenceConstruct", [value, chain.add("Neg", [value])])
    return chain.add("SequenceAt", [held, chain.constant(1, np.int64)])


def where_not_zero(chain: Chain, value: str) -> str:
    """A shape that depends on data."""
    chain.returns(chain.add("NonZero", [value]), TensorProto.INT64)
    return value


def shape_from_value(chain: Chain, value: str) -> str:
    ones = chain.add(
        "ConstantOfShape", [chain.add("Shape", [value])], value=helper.make_tensor("one", FLOAT, [1], [1.0])
    )
    return chain.add("Sub", [value, ones])


def einsum(chain: Chain, value: str) -> str:
    product = chain.add("Einsum", [value, chain.weight(chain.width, chain.width)], equation="ij,kj->ik")
    return chain.add("Tanh", [product])


def resize(chain: Chain, value: str) -> str:
    image = chain.add("Reshape", [value, chain.shape(1, 1, chain.rows, chain.width)])
    large = chain.add("Resize", [image, "", chain.constant([1, 1, 2, 2])], mode="linear")
    small = chain.add("MaxPool", [large], kernel_shape=[2, 2], strides=[2, 2])
    return chain.add("Reshape", [small, chain.shape(chain.rows, chain.width)])


OUTPUTS: dict[str, Twist] = {
    "weight_returned": returned("w1"),
    "input_returned": returned("x"),
    "weight_copied": copied_weight,
    "constant_returned": constant,
    "returned_twice": twice,
    "activation_returned": activation,
    "view_returned": view,
    "unread": unread,
}
OTHERS: dict[str, Twist] = {
    "words": words,
    "sequence": sequence,
    "where_not_zero": where_not_zero,
    "shape_from_value": shape_from_value,
    "einsum": einsum,
    "resize": resize,
}
