"""The training graph's convention: what goes in, what comes out, and that a step is what the formulas say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import remat_cli as remat
from remat_cli.errors import BadInput, Usage
from remat_cli.gradient.optimizers import Hyper, Recipe
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.prepare import Binding
from remat_cli.gradient.training import Options, training_graph
from tests.remat_cli.gradient.nets import model, normalized, perceptron, run, stored, weight
from tests.remat_cli.gradient.row import as_model
from tests.remat_cli.gradient.rows import ROWS

DATA = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)
LABELS = np.array([0, 3, 1, 1])
FEED = {**stored(perceptron()), "x": DATA, "labels": LABELS}


def _names(values: Iterable[Any]) -> list[str]:
    return [value.name for value in values]


def _loss(logits: np.ndarray, labels: np.ndarray) -> float:
    """Cross-entropy as its definition has it; label -100 does not count."""
    kept = labels != -100
    rows = logits.reshape(-1, logits.shape[-1])[kept.reshape(-1)].astype(np.float64)
    chosen = rows[np.arange(len(rows)), labels[kept]]
    return float((np.log(np.exp(rows).sum(1)) - chosen).mean())


def _slope(forward: onnx.ModelProto, feed: dict[str, np.ndarray], name: str, found: np.ndarray) -> tuple[float, float]:
    """Along a random direction: the gradient's word, and a central difference of the forward model in float64."""
    wide = {key: value.astype(np.float64) for key, value in feed.items() if value.dtype == np.float32}
    twin = onnx.ModelProto()
    twin.CopyFrom(forward)
    for tensor in twin.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(wide[tensor.name], tensor.name))
    del twin.graph.value_info[:]
    names = {value.name for value in twin.graph.input}
    twin.graph.input.extend(
        helper.make_tensor_value_info(key, TensorProto.DOUBLE, wide[key].shape) for key in wide if key not in names
    )
    del twin.graph.initializer[:]
    direction = np.random.default_rng(1).standard_normal(found.shape)
    evaluator = ReferenceEvaluator(twin)
    ends = []
    for sign in (1, -1):
        moved = {**wide, name: wide[name] + sign * 1e-6 * direction}
        ends.append(_loss(evaluator.run(None, {key: moved[key] for key in moved})[0], feed["labels"]))
    return float((found * direction).sum()), (ends[0] - ends[1]) / 2e-6


def test_inputs_and_outputs_follow_the_convention() -> None:
    training = training_graph(perceptron(), Options())
    assert _names(training.graph.input) == ["x", "labels", "w1", "b1", "w2"]
    assert _names(training.graph.output) == ["loss", "w1_grad", "b1_grad", "w2_grad"]
    assert not any(node.op_type == "Identity" for node in training.graph.node)
    owners = {"first", "bend", "second", "loss"}
    assert {node.name.split("/")[0] for node in training.graph.node} == owners
    onnx.checker.check_model(training, full_check=True)


@pytest.mark.parametrize("labels", [LABELS, np.array([0, -100, 2, -100])])
def test_gradients_of_cross_entropy(labels: np.ndarray) -> None:
    feed = {**FEED, "labels": labels}
    found = run(training_graph(perceptron(), Options()), feed)
    for name in ("w1", "b1", "w2"):
        said, measured = _slope(perceptron(), feed, name, found[f"{name}_grad"])
        assert said == pytest.approx(measured, abs=1e-5)


def test_gradients_through_batch_normalization_in_training() -> None:
    forward = normalized()
    x = np.random.default_rng(5).standard_normal((4, 3, 6, 5)).astype(np.float32)
    feed = {**stored(forward), "x": x, "labels": LABELS}
    training = training_graph(forward, Options())
    assert not any(
        node.op_type == "BatchNormalization" and node.attribute[-1].name == "training_mode"
        for node in training.graph.node
    )
    assert _names(training.graph.output)[-2:] == ["mean_new", "var_new"]
    found = run(training, feed)
    for name in ("k", "scale", "bias", "w"):
        said, measured = _slope(forward, feed, name, found[f"{name}_grad"])
        assert said == pytest.approx(measured, abs=2e-5)
    expected = ReferenceEvaluator(_with_outputs(forward, ["mean_out", "var_out"])).run(None, {"x": x})
    np.testing.assert_allclose(found["mean_new"], expected[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["var_new"], expected[1], rtol=1e-4, atol=1e-6)


def test_statistics_of_the_batch_itself_are_not_kept() -> None:
    """As PyTorch exports a BatchNorm that tracks none."""
    forward = normalized()
    (node,) = [node for node in forward.graph.node if node.op_type == "BatchNormalization"]
    whole = [helper.make_node("ReduceMean", [node.input[0], "others"], ["batch_mean"], keepdims=0, name="whole")]
    forward.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0, 2, 3]), "others"))
    forward.graph.node.insert(list(forward.graph.node).index(node), *whole)
    plain = training_graph(normalized(), Options())
    node.input[3] = "batch_mean"
    training = training_graph(forward, Options())
    assert _names(plain.graph.output) == [*_names(training.graph.output), "mean_new", "var_new"]
    x = np.random.default_rng(5).standard_normal((4, 3, 6, 5)).astype(np.float32)
    feed = {**stored(forward), "x": x, "labels": LABELS}
    first, second = (
        run(graph, {k: feed[k] for k in _names(graph.graph.input) if k in feed}) for graph in (plain, training)
    )
    np.testing.assert_array_equal(first["k_grad"], second["k_grad"])


def _with_outputs(forward: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    del forward.graph.output[:]
    forward.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    return forward


def test_inference_batch_normalization_is_refused_unless_meant() -> None:
    with pytest.raises(BadInput, match=r"inference mode.*--freeze-bn"):
        training_graph(normalized(training=0), Options())
    training = training_graph(normalized(training=0), Options(freeze_bn=True))
    assert "mean_new" not in _names(training.graph.output)


def test_mean_square_and_own_loss() -> None:
    target = np.ones((4, 4), np.float32)
    found = run(training_graph(perceptron(), Options(loss="mse")), {**FEED, "target": target})
    y = ReferenceEvaluator(perceptron()).run(None, {"x": DATA})[0]
    a = np.tanh(DATA @ FEED["w1"].T + FEED["b1"])
    np.testing.assert_allclose(found["loss"], ((y - target) ** 2).mean(), rtol=1e-5)
    np.testing.assert_allclose(found["w2_grad"], a.T @ (y - target) / 8, rtol=1e-4, atol=1e-6)
    forward = perceptron()
    forward.graph.node.append(helper.make_node("ReduceMean", ["y"], ["score"], keepdims=0, name="score"))
    own = run(training_graph(forward, Options(loss="score")), FEED)
    np.testing.assert_allclose(own["w2_grad"], np.repeat(a.sum(0)[:, None] / 16, 4, 1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["score", "loss"])
def test_a_scalar_that_comes_first_is_the_loss(name: str) -> None:
    forward = perceptron()
    forward.graph.node.append(helper.make_node("ReduceMean", ["y"], [name], keepdims=0, name="score"))
    forward.graph.output.insert(0, helper.make_tensor_value_info(name, TensorProto.FLOAT, []))
    found = run(training_graph(forward, Options()), FEED)
    expected = run(training_graph(forward, Options(loss=name)), FEED)
    np.testing.assert_array_equal(found["w2_grad"], expected["w2_grad"])
    assert "labels" in _names(training_graph(forward, Options(logits="y")).graph.input)


def test_a_softmax_that_the_model_takes_as_well_counts_once() -> None:
    """The logarithms of cross-entropy are those of the model's own LogSoftmax of the same logits."""
    forward = perceptron()
    nodes = [
        helper.make_node("LogSoftmax", ["y"], ["logs"], axis=1, name="logs"),
        helper.make_node("SoftmaxCrossEntropyLoss", ["y", "classes"], ["likely"], name="likely"),
        helper.make_node("ReduceMean", ["logs"], ["even"], keepdims=0, name="even"),
        helper.make_node("Sub", ["likely", "even"], ["total"], name="total"),
    ]
    forward.graph.node.extend(nodes)
    forward.graph.initializer.append(onnx.numpy_helper.from_array(LABELS, "classes"))
    found = run(training_graph(forward, Options(loss="total")), FEED)["w2_grad"]
    a = np.tanh(DATA @ FEED["w1"].T + FEED["b1"])
    y = ReferenceEvaluator(perceptron()).run(None, {"x": DATA})[0]
    softmax = np.exp(y) / np.exp(y).sum(1, keepdims=True)
    by_y = (softmax - np.eye(y.shape[1])[LABELS]) / len(y) - (1 - y.shape[1] * softmax) / y.size
    np.testing.assert_allclose(found, a.T @ by_y, rtol=1e-4, atol=1e-6)


def test_only_what_is_asked_for() -> None:
    training = training_graph(perceptron(), Options(choice=Choice(wrt=["w2"])))
    assert _names(training.graph.output) == ["loss", "w2_grad"]
    assert _names(training.graph.input) == ["x", "labels", "w2"]
    assert "bend" not in {node.name.split("/")[0] for node in training.graph.node if "/grad/" in node.name}


def _expected(optimizer: str, p: np.ndarray, g: np.ndarray, h: Hyper) -> np.ndarray:
    """Two steps from a state of zeros, as PyTorch's documentation writes them."""
    p, m, v = p.astype(np.float64), 0.0, 0.0
    for t in (1, 2):
        if optimizer in ("sgd", "momentum"):
            m = (h.momentum * m if optimizer == "momentum" else 0.0) + g
            p = p - h.rate * m
            continue
        if optimizer == "adamw":
            p = p * (1 - h.rate * 0.01)
        m, v = h.beta1 * m + (1 - h.beta1) * g, h.beta2 * v + (1 - h.beta2) * g * g
        p = p - h.rate * (m / (1 - h.beta1**t)) / (np.sqrt(v / (1 - h.beta2**t)) + h.epsilon)
    return p


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_optimizers_step_as_their_formulas_do(optimizer: str) -> None:
    """On a loss with constant gradients, so that both steps have the same."""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["y"], name="mul"),
        helper.make_node("ReduceSum", ["y"], ["l"], keepdims=0),
    ]
    forward = model(nodes, {"x": [3]}, "l", {"w": weight(1, 3)})
    x = np.array([0.5, -1.0, 2.0], np.float32)
    training = training_graph(forward, Options(loss="l", recipe=Recipe(optimizer)))
    assert not any(name.endswith("_grad") for name in _names(training.graph.output))
    state = {
        value.name: np.zeros([d.dim_value for d in value.type.tensor_type.shape.dim], np.float32)
        for value in training.graph.input
    }
    state |= {"x": x, "w": weight(1, 3), "learning_rate": np.float32(0.01)}
    for _ in range(2):
        outputs = run(training, state)
        state |= {name.removesuffix("_new"): value for name, value in outputs.items() if name.endswith("_new")}
    np.testing.assert_allclose(state["w"], _expected(optimizer, weight(1, 3), x, Hyper()), rtol=1e-5)


def test_scalar_constants_need_not_be_fed() -> None:
    forward = perceptron()
    forward.graph.node.append(helper.make_node("Mul", ["y", "half"], ["z"], name="halve"))
    forward.graph.initializer.append(onnx.numpy_helper.from_array(np.array(0.5, np.float32), "half"))
    training = training_graph(forward, Options(logits="z"))
    assert "half" in _names(training.graph.input)
    found = run(training, FEED)
    said, measured = _slope(_with_outputs(forward, ["z"]), FEED | stored(forward), "w1", found["w1_grad"])
    assert said == pytest.approx(measured, abs=1e-5)


def test_a_gradient_is_used_up_as_soon_as_it_is_there() -> None:
    training = training_graph(perceptron(), Options(recipe=Recipe("adamw")))
    places = {node.name: place for place, node in enumerate(training.graph.node)}
    last_of_head = max(place for name, place in places.items() if name.startswith("w2/update/"))
    assert last_of_head < min(place for name, place in places.items() if name.startswith("first/grad/"))


@pytest.mark.parametrize("size, drawer", [(50, "RandomUniform"), (5000, "Dropout")])
def test_dropout_keeps_its_mask(size: int, drawer: str) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"], name="mul"),
        helper.make_node("Dropout", ["h", "ratio", "yes"], ["d"], name="drop"),
        helper.make_node("ReduceSum", ["d"], ["l"], keepdims=0, name="sum"),
    ]
    weights = {"w": weight(1, size), "ratio": np.float32(0.25), "yes": np.array(True)}
    training = training_graph(model(nodes, {"x": [size]}, "l", weights), Options(loss="l"))
    (drop,) = (node for node in training.graph.node if node.op_type == drawer)
    assert any(attribute.name == "seed" for attribute in drop.attribute)
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    found = run(training, {"x": x, "w": weights["w"]})
    shares = found["w_grad"] / x
    assert set(np.round(shares, 4)) == {0.0, np.float32(1.3333)}
    np.testing.assert_allclose((found["w_grad"] * weights["w"]).sum(), found["loss"], rtol=1e-3)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_half_types_keep_their_type(dtype: int) -> None:
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="mul"),
        helper.make_node("LayerNormalization", ["h", "s", "b"], ["n"], name="ln"),
        helper.make_node("Gelu", ["n"], ["a"], name="gelu"),
        helper.make_node("Softmax", ["a"], ["y"], name="soft"),
    ]
    weights = {"w": weight(1, 3, 4).astype(kind), "s": weight(2, 4).astype(kind), "b": weight(3, 4).astype(kind)}
    training = training_graph(model(nodes, {"x": [4, 3]}, "y", weights, dtype=dtype), Options())
    onnx.checker.check_model(training, full_check=True)
    kinds = {value.name: value.type.tensor_type.elem_type for value in training.graph.output}
    assert kinds.pop("loss") == TensorProto.FLOAT
    assert set(kinds.values()) == {dtype}


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_every_rule_keeps_half_types(dtype: int) -> None:
    """No constant or cast of another type creeps in: the checker refuses mixed types."""
    for row in ROWS:
        forward = as_model(row, helper.tensor_dtype_to_np_dtype(dtype))
        if not _is_valid(forward):
            continue  # the op is not defined on this type
        trained = _names(forward.graph.input)
        training = training_graph(forward, Options(loss="loss", choice=Choice(wrt=trained), freeze_bn=True))
        onnx.checker.check_model(training, full_check=True)


def _is_valid(forward: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(forward, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def test_half_gradients_have_the_values_of_full_ones() -> None:
    half = {name: value.astype(np.float16) for name, value in stored(perceptron()).items()}
    forward = model(perceptron().graph.node, {"x": [4, 3]}, "y", half, dtype=TensorProto.FLOAT16)
    training = training_graph(forward, Options())
    feed = {**half, "x": DATA.astype(np.float16), "labels": LABELS}
    found = dict(zip(_names(training.graph.output), ReferenceEvaluator(training).run(None, feed)))
    expected = run(training_graph(perceptron(), Options()), FEED)
    for name, value in expected.items():
        assert found[name].dtype == (np.float32 if name == "loss" else np.float16)
        np.testing.assert_allclose(found[name], value, atol=5e-3)


def test_symbolic_dimensions_are_bound_or_refused() -> None:
    training = training_graph(perceptron("batch"), Options(binding=Binding(batch=2)))
    assert [d.dim_value for d in training.graph.input[1].type.tensor_type.shape.dim] == [2]
    same = training_graph(perceptron("batch"), Options(binding=Binding(shapes={"x": [2, 3]})))
    assert same.graph.node == training.graph.node
    with pytest.raises(BadInput, match=r"dimension 0 .batch. of input 'x' has no size; pass --dim batch=N"):
        training_graph(perceptron("batch"), Options())
    with pytest.raises(Usage, match="dimension 0 of input 'x' is fixed at 4"):
        training_graph(perceptron(4), Options(binding=Binding(batch=2)))
    masked = perceptron("batch")
    masked.graph.input.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, [4]))
    masked.graph.node.append(helper.make_node("Mul", ["y", "mask"], ["z"]))
    both = training_graph(masked, Options(logits="z", binding=Binding(batch=2)))
    assert [d.dim_value for d in both.graph.input[1].type.tensor_type.shape.dim] == [4]


def test_bad_input_is_refused_in_one_line() -> None:
    odd = perceptron()
    odd.graph.node[1].op_type = "Det"
    ragged = [
        (perceptron(), Options(loss="hinge"), "computes no .hinge.; its outputs are: y; losses"),
        (perceptron(), Options(loss="y"), "not a scalar"),
        (perceptron(), Options(choice=Choice(wrt=["nothing"])), "--wrt nothing"),
        (perceptron(), Options(class_axis=3), "--class-axis 3: .y. is .4, 4., whose axes are 0 to 1"),
        (perceptron(), Options(binding=Binding(shapes={"z": [1]})), "no input of that name"),
    ]
    for forward, options, words in ragged:
        with pytest.raises(BadInput, match=words) as caught:
            training_graph(forward, options)
        assert "\n" not in str(caught.value)


def test_names_that_the_training_graph_needs_are_refused() -> None:
    forward = perceptron()
    forward.graph.node[1].output[0] = forward.graph.node[2].input[0] = "labels"
    with pytest.raises(BadInput, match="a value called 'labels' already"):
        training_graph(forward, Options())
    forward = perceptron()
    forward.graph.node[0].input[2] = forward.graph.initializer[1].name = "w1_grad"
    with pytest.raises(BadInput, match="an input called 'w1_grad'"):
        training_graph(forward, Options())


def test_a_weight_that_an_op_makes_too_is_refused_with_what_to_rename() -> None:
    """A module with a parameter `t` that also calls x.t() is exported so."""
    forward = perceptron()
    forward.graph.node[0].output[0] = forward.graph.node[1].input[0] = "b1"
    with pytest.raises(BadInput, match=r"'b1' is written by both an input or a weight .* rename the parameter"):
        training_graph(forward, Options())


def test_statistics_of_normalizations_pass_no_gradient_silently() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"], name="mul"),
        helper.make_node("LayerNormalization", ["h", "w"], ["n", "mean"], name="ln"),
        helper.make_node("ReduceSum", ["mean"], ["l"], keepdims=0, name="sum"),
    ]
    with pytest.raises(BadInput, match="LayerNormalization node 'ln': the loss depends on an output besides the first"):
        training_graph(model(nodes, {"x": [2, 3]}, "l", {"w": weight(1, 3)}), Options(loss="l"))


def test_an_op_without_a_rule_is_named_unless_off_the_path() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"], name="mul"),
        helper.make_node("Det", ["h"], ["d"], name="volume"),
        helper.make_node("ReduceSum", ["h"], ["s"], keepdims=0, name="sum"),
    ]
    forward = model(nodes, {"x": [3, 3]}, "d", {"w": weight(1, 3, 3)})
    forward.graph.node[1].domain = "com.example"
    with pytest.raises(BadInput, match=r"no gradient rule for com.example.Det .node 'volume'.: write it by"):
        training_graph(forward, Options(loss="d"))
    forward.graph.node[1].domain = ""
    with pytest.raises(BadInput, match=r"no gradient rule for Det .node 'volume'.: write it by"):
        training_graph(forward, Options(loss="d"))
    assert training_graph(forward, Options(loss="s")).graph.output[1].name == "w_grad"


def test_integers_and_control_flow_are_refused() -> None:
    picked = [
        helper.make_node("Gather", ["w", "n"], ["y"], name="pick"),
        helper.make_node("ReduceSum", ["y"], ["l"], keepdims=0),
    ]
    forward = model(picked, {}, "l", {"w": weight(1, 3, 2), "n": np.array([0, 2])})
    with pytest.raises(BadInput, match="'n' is INT64: only float"):
        training_graph(forward, Options(loss="l", choice=Choice(wrt=["n"])))
    branch = helper.make_graph(
        [helper.make_node("Neg", ["w"], ["o"])], "b", [], [helper.make_tensor_value_info("o", 1, [3])]
    )
    nodes = [
        helper.make_node("If", ["flag"], ["v"], name="choose", then_branch=branch, else_branch=branch),
        helper.make_node("ReduceSum", ["v"], ["l"], keepdims=0),
    ]
    forward = model(nodes, {}, "l", {"w": weight(1, 3)})
    forward.graph.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
    with pytest.raises(BadInput, match=r"no gradient rule for If .node 'choose'.: control flow"):
        training_graph(forward, Options(loss="l"))


def test_all_that_cannot_be_differentiated_is_said_at_once() -> None:
    nodes = [
        helper.make_node("TopK", ["x", "two"], ["top", "which"], name="best"),
        helper.make_node("MatMul", ["top", "w"], ["y"], name="mul"),
        helper.make_node("TopK", ["y", "two"], ["t1", "i1"], name="again"),
        helper.make_node("TopK", ["t1", "two"], ["t2", "i2"], name="more"),
        helper.make_node("Hardmax", ["t2"], ["h"], name="hard"),
        helper.make_node("ReduceSum", ["h"], ["l"], keepdims=0),
    ]
    two = {"two": np.array([2], np.int64), "w": weight(1, 2, 4)}
    with pytest.raises(BadInput) as refused:
        training_graph(model(nodes, {"x": [3, 4]}, "l", two), Options(loss="l"))
    assert str(refused.value).startswith("no gradient rule for Hardmax (node 'hard'): write it by")
    for node in nodes:
        node.domain = {"MatMul": "com.microsoft", "TopK": "mine"}.get(node.op_type, "")
    forward = model(nodes, {"x": [3, 4]}, "l", two)
    forward.opset_import.extend(helper.make_opsetid(name, 1) for name in ("com.microsoft", "mine"))
    with pytest.raises(BadInput) as refused:
        training_graph(forward, Options(loss="l"))
    head, *lines = str(refused.value).splitlines()
    assert head == "5 ops of 3 kinds cannot be differentiated:"
    assert "mine.TopK (node 'best' and 2 more): has no gradient: detach" in lines[0]
    assert "com.microsoft.MatMul (node 'mul'): fused by a runtime's optimizer" in lines[1]
    assert "Hardmax (node 'hard'): write it by simpler ops" in lines[2]


def test_a_fill_of_no_dimensions_is_a_number() -> None:
    """As tracing exporters write a mask's least number."""
    nodes = [
        helper.make_node("ConstantOfShape", ["none"], ["two"], value=helper.make_tensor("v", 1, [1], [2.0])),
        helper.make_node("Mul", ["w", "two"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["l"], keepdims=0),
    ]
    forward = model(nodes, {}, "l", {"w": weight(1, 3), "none": np.array([], np.int64)})
    found = run(training_graph(forward, Options(loss="l", choice=Choice(wrt=["w"]))), {"w": weight(1, 3)})
    np.testing.assert_array_equal(found["w_grad"], np.full(3, 2.0))


def test_control_flow_stands_in_the_table_with_what_lies_behind_it() -> None:
    flag, three = helper.make_tensor_value_info("c", TensorProto.BOOL, []), [TensorProto.FLOAT, [3]]
    inside = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Mul", ["a", "w"], ["b"])]
    ends = [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("b", *three)]
    starts = [helper.make_tensor_value_info("i", TensorProto.INT64, []), flag]
    starts.append(helper.make_tensor_value_info("a", *three))
    body = helper.make_graph(inside, "body", starts, ends)
    branch = helper.make_graph(
        [helper.make_node("Neg", ["y"], ["o"])], "b", [], [helper.make_tensor_value_info("o", *three)]
    )
    nodes = [
        helper.make_node("Hardmax", ["w"], ["h"], name="before"),
        helper.make_node("Loop", ["n", "", "h"], ["y"], name="turns", body=body),
        helper.make_node("Tanh", ["y"], ["t"], name="bent"),
        helper.make_node("If", ["flag"], ["v"], name="choose", then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["v", "t"], ["s"], name="sum"),
        helper.make_node("Hardmax", ["s"], ["k"], name="behind"),
        helper.make_node("ReduceSum", ["k"], ["l"], keepdims=0),
    ]
    forward = model(nodes, {}, "l", {"w": weight(1, 3)})
    forward.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, []))
    forward.graph.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
    with pytest.raises(BadInput) as refused:
        training_graph(forward, Options(loss="l"))
    head, *lines = str(refused.value).splitlines()
    assert head == "4 ops of 3 kinds cannot be differentiated:"
    assert "Loop (node 'turns'): control flow" in lines[0]
    assert "unroll it" in lines[0]
    assert "If (node 'choose'): control flow" in lines[1]
    assert "torch.where" in lines[1]
    assert "Hardmax (node 'behind' and 1 more): write it by simpler ops" in lines[2]


def test_what_rules_refuse_is_said_of_every_op() -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], kernel_shape=[2, 2], storage_order=1, name="pool"),
        helper.make_node("Mul", ["w", "a"], ["m"], name="scale"),
        helper.make_node("MaxPool", ["m"], ["b"], kernel_shape=[2, 2], storage_order=1, name="pool1"),
        helper.make_node(
            "Resize",
            ["b", "", "double"],
            ["c"],
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
            name="wide",
        ),
        helper.make_node("ReduceSum", ["c"], ["l"], keepdims=0),
    ]
    weights = {
        "w": weight(1, 1, 1, 5, 5),
        "double": np.array([1, 1, 2, 2], np.float32),
        "region": np.zeros(8, np.float32),
    }
    with pytest.raises(BadInput) as refused:
        training_graph(model(nodes, {"x": [1, 1, 6, 6]}, "l", weights), Options(loss="l"))
    head, *lines = str(refused.value).splitlines()
    assert head == "2 ops of 2 kinds cannot be differentiated:"
    assert "'wide'" in lines[0]
    assert "'pool1'" in lines[1]


def test_indices_shorter_than_what_they_choose_from_are_folded() -> None:
    """As BERT's token types: a row of positions out of a longer one."""
    table = np.arange(12, dtype=np.int64).reshape(2, 6) * 10
    nodes = [
        helper.make_node("GatherElements", ["table", "at"], ["picked"], axis=1),
        helper.make_node("Cast", ["picked"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["float", "w"], ["m"]),
        helper.make_node("ReduceSum", ["m"], ["l"], keepdims=0),
    ]
    weights = {"table": table, "at": np.array([[5, 0, 1]]), "w": weight(1, 1, 3)}
    training = training_graph(model(nodes, {}, "l", weights), Options(loss="l"))
    np.testing.assert_array_equal(run(training, {"w": weights["w"]})["w_grad"], [[50, 0, 10]])


def test_what_is_picked_often_gets_the_whole_sum_on_several_threads() -> None:
    """Of so many rows that onnxruntime divides them among threads; ScatterND(add) loses some, where cores are idle."""
    rows, width, picks = 40, 64, 20_000
    drawn = np.random.default_rng(1)
    words, places = drawn.standard_normal((rows, width)).astype(np.float32), drawn.integers(-rows, rows, picks)
    weights = drawn.standard_normal((picks, width)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["words", "places"], ["picked"], axis=0),
        helper.make_node("Mul", ["picked", "weights"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted"], ["loss"], keepdims=0),
    ]
    given = [
        helper.make_tensor_value_info("places", TensorProto.INT64, [picks]),
        helper.make_tensor_value_info("weights", TensorProto.FLOAT, [picks, width]),
    ]
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "picks", given, [loss], [onnx.numpy_helper.from_array(words, "words")])
    forward = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 4
    step = training_graph(forward, Options(loss="loss", choice=Choice(["words"])))
    assert not any(node.op_type == "ScatterND" for node in step.graph.node)
    session = onnxruntime.InferenceSession(step.SerializeToString(), options, providers=["CPUExecutionProvider"])
    exact = np.zeros((rows, width))
    np.add.at(exact, places, weights.astype(np.float64))
    for _ in range(5):
        (found,) = session.run(["words_grad"], {"words": words, "places": places, "weights": weights})
        np.testing.assert_allclose(found, exact, atol=1e-2)


def test_what_a_call_of_a_function_leaves_out_is_what_the_function_says() -> None:
    """Its default was lost as it was written out, so that the loss was another function's, without a word."""
    body = helper.make_node("LeakyRelu", ["x"], ["y"])
    body.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    slope = [helper.make_attribute("slope", 0.5)]
    function = helper.make_function("own", "Act", ["x"], ["y"], [body], opsets[:1], attribute_protos=slope)
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"]),
        helper.make_node("Act", ["h"], ["z"], domain="own"),
        helper.make_node("ReduceSum", ["z"], ["loss"], keepdims=0),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "g", [given], [loss], [onnx.numpy_helper.from_array(np.ones(2, np.float32), "w")])
    forward = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9)
    feed = {"x": np.array([1, -2], np.float32), "w": np.ones(2, np.float32)}
    found = run(training_graph(forward, Options()), feed)
    assert found["loss"] == 1 - 2 * 0.5
    np.testing.assert_array_equal(found["w_grad"], [1, -2 * 0.5])


def test_models_are_read_as_everywhere_else() -> None:
    """In whatever order nodes stand, in memory too; sizes are given by names of dimensions, or by their places."""
    sorted_one, mixed = perceptron(), perceptron(-1)  # as some exporters write an open dimension
    nodes = [*mixed.graph.node][::-1]
    del mixed.graph.node[:]
    mixed.graph.node.extend(nodes)
    for sizes in ({"batch": 4}, {"dims": {"x:0": 4}}, {"shapes": {"x": (4, 3)}}):
        assert remat.grad(mixed, **sizes).graph == remat.grad(sorted_one).graph
    with pytest.raises(Usage, match="there is no dimension 'y'"):
        remat.grad(mixed, batch=4, dims={"y": 2})


def test_an_input_that_a_known_branch_alone_reads_is_there() -> None:
    """It was refused, as what nothing produces."""
    info = helper.make_tensor_value_info
    made = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["m"])], "branch", [], [info("m", TensorProto.FLOAT, [2])]
    )
    nodes = [
        helper.make_node("If", ["known"], ["z"], then_branch=made, else_branch=made),
        helper.make_node("ReduceSum", ["z"], ["loss"], keepdims=0),
    ]
    held = [onnx.numpy_helper.from_array(np.array([3, 4], np.float32), "w")]
    held.append(onnx.numpy_helper.from_array(np.array(True), "known"))
    given, loss = info("x", TensorProto.FLOAT, [2]), info("loss", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "g", [given], [loss], held)
    forward = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    data = np.array([1, -2], np.float32)
    assert run(training_graph(forward, Options()), {"x": data, "w": np.array([3, 4], np.float32)})["loss"] == 3 - 8


def test_functions_that_call_each_other_without_end_are_refused_in_memory_too() -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    forward = perceptron()
    forward.graph.node.append(helper.make_node("One", ["y"], ["z"], domain="own"))
    forward.opset_import.append(opsets[1])
    for name, other in (("One", "Two"), ("Two", "One")):
        call = helper.make_node(other, ["x"], ["y"], domain="own")
        forward.functions.append(helper.make_function("own", name, ["x"], ["y"], [call], opsets))
    with pytest.raises(BadInput, match="or no end"):
        remat.grad(forward)
