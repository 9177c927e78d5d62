"""Small forward models for tests, and runs of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(3)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[Any]],
    output: str,
    weights: dict[str, np.ndarray],
    opset: int = 20,
    dtype: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(output, dtype, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def weight(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(0.5)


def perceptron(batch: int | str = 4) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="first", transB=1),
        helper.make_node("Tanh", ["h"], ["a"], name="bend"),
        helper.make_node("MatMul", ["a", "w2"], ["y"], name="second"),
    ]
    weights = {"w1": weight(1, 5, 3), "b1": weight(2, 5), "w2": weight(3, 5, 4)}
    return model(nodes, {"x": [batch, 3]}, "y", weights)


def normalized(training: int = 1) -> onnx.ModelProto:
    """Convolution, BatchNormalization, Relu, mean and product."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node(
            "BatchNormalization",
            ["c", "scale", "bias", "mean", "var"],
            ["n", "mean_out", "var_out"] if training else ["n"],
            name="bn",
            training_mode=training,
        ),
        helper.make_node("Relu", ["n"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["g"], name="pool"),
        helper.make_node("Flatten", ["g"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "w"], ["y"], name="head"),
    ]
    weights = {
        "k": weight(1, 6, 3, 3, 3),
        "scale": weight(2, 6) + 1,
        "bias": weight(3, 6),
        "mean": np.zeros(6, np.float32),
        "var": np.ones(6, np.float32),
        "w": weight(4, 6, 4),
    }
    return model(nodes, {"x": [4, 3, 6, 5]}, "y", weights)


def stored(forward: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in forward.graph.initializer}


def run(training: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every output by name, from stock ONNX Runtime; what the graph does not take is left out."""
    session = onnxruntime.InferenceSession(training.SerializeToString(), providers=["CPUExecutionProvider"])
    known = [value.name for value in (*session.get_inputs(), *session.get_overridable_initializers())]
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, {name: np.asarray(feed[name]) for name in known if name in feed})))
