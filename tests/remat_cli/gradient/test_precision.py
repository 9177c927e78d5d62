"""Mixed precision: against the same gradients in float32, and against how float16 itself rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import remat_cli as remat
from remat_cli.gradient.optimizers import Recipe
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.training import Options, training_graph
from tests.remat_cli.gradient.nets import model, normalized, perceptron, stored, weight
from tests.remat_cli.gradient.row import Row, as_model, is_float
from tests.remat_cli.gradient.rows import ROWS

NEAR = {"float16": 2e-2, "bfloat16": 8e-2}  # of a row's largest number: a few roundings
DATA = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)
FEED = {**stored(perceptron()), "x": DATA, "labels": np.array([0, 3, 1, 1])}
Outputs = dict[str, np.ndarray]


def run(training: onnx.ModelProto, feeds: dict[str, Any]) -> Outputs:
    """As it stands: left alone, the runtime takes pairs of Casts out."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = training.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    taken = {value.name for value in training.graph.input}
    return dict(zip(names, session.run(names, {key: feeds[key] for key in feeds if key in taken}), strict=True))


def rounded(training: onnx.ModelProto, feeds: dict[str, Any]) -> Outputs:
    """By ONNX's reference, which rounds every result; a CPU's session leaves some of that out, whatever its options."""
    evaluator = ReferenceEvaluator(training)
    defaults = {tensor.name: numpy_helper.to_array(tensor) for tensor in training.graph.initializer}
    taken = {name: (defaults | feeds)[name] for name in evaluator.input_names}
    return dict(zip(evaluator.output_names, evaluator.run(None, taken), strict=True))


@pytest.mark.parametrize("row", ROWS[::3], ids=str)
def test_each_rule_in_float16_is_that_in_float32(row: Row) -> None:
    trained = tuple(f"in{k}" for k, x in enumerate(row.inputs) if is_float(x) and k not in row.fixed)
    feeds = {f"in{k}": np.asarray(x, np.float32) for k, x in enumerate(row.inputs) if f"in{k}" in trained}
    options = {"loss": "loss", "choice": Choice(trained), "freeze_bn": True}
    exact = run(training_graph(as_model(row, np.float32), Options(**options)), feeds)
    narrow = training_graph(as_model(row, np.float32), Options(**options, precision="float16"))
    onnx.checker.check_model(narrow, full_check=True)
    found = run(narrow, {**feeds, "loss_scale": np.array(64, np.float32)})
    assert found.pop("finite")
    for name, value in exact.items():
        assert found[name].dtype == np.float32
        assert np.abs(found[name] - value).max(initial=0) <= NEAR["float16"] * max(1e-3, np.abs(value).max(initial=0))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_products_are_narrow_and_parameters_are_not(precision: str) -> None:
    training = training_graph(normalized(), Options(precision=precision))
    onnx.checker.check_model(training, full_check=True)
    narrow = getattr(TensorProto, precision.upper())
    types = {
        value.name: value.type.tensor_type.elem_type for value in (*training.graph.value_info, *training.graph.output)
    }
    inputs = {value.name: value.type.tensor_type.elem_type for value in training.graph.input}
    types |= inputs | {tensor.name: tensor.data_type for tensor in training.graph.initializer}
    reads = {node.name: [types[name] for name in node.input if name] for node in training.graph.node}
    assert set(reads["conv"]) == {narrow}
    assert {inputs[name] for name in inputs if name != "labels"} == {TensorProto.FLOAT}
    sums = [kinds[0] for name, kinds in reads.items() if name.startswith("bn/Reduce")]
    assert sums
    assert set(sums) == {TensorProto.FLOAT}
    relu = next(node for node in training.graph.node if node.op_type == "Relu")
    assert types[relu.output[0]] == narrow  # what is kept between layers is


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_a_step_is_near_that_in_float32_by_another_runtime(precision: str) -> None:
    exact = run(training_graph(perceptron(), Options()), FEED)
    found = rounded(training_graph(perceptron(), Options(precision=precision)), FEED)
    assert any((found[name] != value).any() for name, value in exact.items())  # it rounds
    for name, value in exact.items():
        assert found[name].dtype == np.float32
        np.testing.assert_allclose(found[name], value, atol=NEAR[precision] * np.abs(value).max())


def _faint() -> onnx.ModelProto:
    """Its gradient by `w` is 3e-8 for each element of `x`, less than float16 can say."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("ReduceSum", ["m"], ["s"], keepdims=0),
        helper.make_node("Mul", ["s", "small"], ["loss"]),
    ]
    made = model(nodes, {"x": [2, 3]}, "loss", {"w": weight(1, 3, 1)})
    made.graph.node.insert(0, helper.make_node("Constant", [], ["small"], value_float=3e-8))
    return made


def test_a_scaled_loss_keeps_what_float16_would_lose() -> None:
    training = training_graph(_faint(), Options(loss="loss", precision="float16"))
    feeds = {"x": np.ones((2, 3), np.float32), **stored(_faint())}
    found = rounded(training, feeds)
    np.testing.assert_allclose(found["w_grad"], np.full((3, 1), 6e-8), rtol=2e-3)
    assert found["finite"]
    lost = rounded(training, {**feeds, "loss_scale": np.array(0.25, np.float32)})
    np.testing.assert_array_equal(lost["w_grad"], np.zeros((3, 1)))
    with np.errstate(over="ignore", invalid="ignore"):
        above = rounded(training, {**feeds, "loss_scale": np.array(1e13, np.float32)})
    assert not above["finite"]


def test_a_model_in_float16_is_trained_by_parameters_in_float32() -> None:
    half = perceptron()
    for tensor in half.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*half.graph.input, *half.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    training = training_graph(half, Options(precision="float16", recipe=Recipe("adamw")))
    kinds = {value.name: value.type.tensor_type.elem_type for value in training.graph.input}
    assert kinds.pop("x") == TensorProto.FLOAT16
    assert kinds.pop("labels") == TensorProto.INT64
    assert set(kinds.values()) == {TensorProto.FLOAT}
    losses = [remat.step(training, half)((DATA, FEED["labels"])) for _ in range(2)]
    assert losses[0] == pytest.approx(float(run(training_graph(perceptron(), Options()), FEED)["loss"]), rel=1e-2)


def test_no_such_precision() -> None:
    with pytest.raises(remat.Usage, match="there is no precision 'half'; there are float32, float16, bfloat16"):
        remat.grad(perceptron(), precision="half")
