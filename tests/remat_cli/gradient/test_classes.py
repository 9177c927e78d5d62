"""Where the classes are: as ONNX's SoftmaxCrossEntropyLoss has them, but for sequences that a product gives."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from remat_cli.gradient.classes import named_class_axis
from remat_cli.gradient.training import Options, training_graph
from remat_cli.zoo.build import build

LAST = {"layers": 1, "hidden": 16, "heads": 2, "batch": 2, "vocabulary": 20, "seq": 4}


def labels_of(model: onnx.ModelProto) -> list[int]:
    info = next(value for value in model.graph.input if value.name == "labels")
    return [dim.dim_value for dim in info.type.tensor_type.shape.dim]


def pictures(kind: str, rank: int) -> onnx.ModelProto:
    """Logits [2, 3, ...] of a convolution, or of a product over the last axis and a bias."""
    shape = [2, 3, *([4] * (rank - 2))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["logits"])]
    weight = [4, 4] if rank > 2 else [3, 3]
    if kind == "Conv":
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["logits"])]
        weight = [3, 3, *([1] * (rank - 2))]
    bias = [3] if kind == "Conv" or rank == 2 else [4]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    stored = [onnx.numpy_helper.from_array(np.ones(weight, np.float32), "w")]
    stored.append(onnx.numpy_helper.from_array(np.ones(bias, np.float32), "b"))
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def capped() -> onnx.ModelProto:
    """Positions flattened for the product, and its logits held within bounds, as some language models do."""
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["rows"]),
        helper.make_node("Gemm", ["rows", "w", "b"], ["m"]),
        helper.make_node("Reshape", ["m", "whole"], ["scores"]),
        helper.make_node("Tanh", ["scores"], ["within"]),
        helper.make_node("Mul", ["within", "cap"], ["logits"]),
    ]
    shapes = {"w": [5, 7], "b": [7], "cap": []}
    stored = [onnx.numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in shapes.items()]
    stored.append(onnx.numpy_helper.from_array(np.array([6, 5]), "flat"))
    stored.append(onnx.numpy_helper.from_array(np.array([2, 3, 7]), "whole"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 5])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [2, 3, 7])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_a_product_is_seen_through_what_leaves_features_in_place() -> None:
    training = training_graph(capped(), Options())
    assert (named_class_axis(training), labels_of(training)) == (2, [2, 3])


@pytest.mark.parametrize(
    "kind, rank, axis",
    [("MatMul", 2, 1), ("Conv", 3, 1), ("MatMul", 3, 2), ("Conv", 4, 1), ("MatMul", 4, 1), ("Conv", 5, 1)],
)
def test_by_rank(kind: str, rank: int, axis: int) -> None:
    """The witness of the loss itself is ONNX Runtime on ONNX's own loss, its classes on axis 1."""
    forward = pictures(kind, rank)
    training = training_graph(forward, Options())
    shape = [2, 3, *([4] * (rank - 2))]
    assert named_class_axis(training) == axis
    assert labels_of(training) == [size for place, size in enumerate(shape) if place != axis]
    random = np.random.default_rng(rank)
    x = random.standard_normal(shape).astype(np.float32)
    labels = random.integers(0, shape[axis], labels_of(training))
    forward.graph.node.extend(
        [
            helper.make_node(
                "Transpose", ["logits"], ["scores"], perm=[0, axis, *(a for a in range(1, rank) if a != axis)]
            ),
            helper.make_node("SoftmaxCrossEntropyLoss", ["scores", "labels"], ["loss"]),
        ]
    )
    forward.graph.input.append(helper.make_tensor_value_info("labels", TensorProto.INT64, labels.shape))
    forward.graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, []))
    ours = run(training, {"x": x, "labels": labels, "w": weight(forward, "w"), "b": weight(forward, "b")})
    assert ours == pytest.approx(run(forward, {"x": x, "labels": labels}), rel=1e-5)


def weight(model: onnx.ModelProto, name: str) -> np.ndarray:
    return onnx.numpy_helper.to_array(next(entry for entry in model.graph.initializer if entry.name == name))


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> float:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return float(session.run(["loss"], feeds)[0])


@pytest.mark.parametrize(
    "name, settings, axis", [("gpt2", LAST, 2), ("unet", {"batch": 1, "image": 32, "width": 4}, 3)]
)
def test_the_zoo_says_itself_or_follows_the_rule(name: str, settings: dict[str, int], axis: int) -> None:
    assert named_class_axis(training_graph(build(name, **settings), Options())) == axis


def test_who_says_otherwise_is_heard() -> None:
    assert named_class_axis(training_graph(pictures("Conv", 4), Options(class_axis=-1))) == 3
