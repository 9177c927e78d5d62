"""Forms that exporters write and rules once missed, each against the forward model's own slope in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.training import Options, training_graph

RANDOM = np.random.default_rng(0)
LABELS = np.array([0, 2, 1, 2])


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


# op, float inputs that are trained and integer ones that are not, attributes
FORMS: list[tuple[str, list[Any], dict[str, object]]] = [
    ("ConvTranspose", [normal(2, 3, 5, 5), normal(3, 4, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", [normal(2, 3, 5, 5), normal(3, 4, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ("ConvTranspose", [normal(2, 3, 5, 5), normal(3, 4, 3, 3)], {"strides": [2, 2], "output_shape": [10, 10]}),
    (
        "ConvTranspose",
        [normal(1, 4, 4, 4), normal(4, 1, 4, 3)],
        {"output_shape": [8, 9], "strides": [2, 2], "group": 2},
    ),
    ("Gather", [normal(5, 3), np.array([0, 3, 3], np.int32)], {}),
    *(
        ("Resize", [normal(1, 2, 9, 7), None, None, np.array([1, 2, *size])], {"mode": mode, "antialias": 1, **extra})
        for size in ([4, 3], [5, 11])
        for mode, extra in (("linear", {}), ("cubic", {"cubic_coeff_a": -0.5}), ("linear", {"exclude_outside": 1}))
    ),
    ("NegativeLogLikelihoodLoss", [normal(4, 3), LABELS], {}),
    ("NegativeLogLikelihoodLoss", [normal(4, 3), LABELS], {"ignore_index": 2, "reduction": "sum"}),
    ("NegativeLogLikelihoodLoss", [normal(2, 3, 4), RANDOM.integers(0, 3, (2, 4))], {"reduction": "none"}),
]


@pytest.mark.parametrize("op, inputs, attributes", FORMS, ids=lambda value: value if isinstance(value, str) else "")
def test_gradients_are_the_slopes(op: str, inputs: list[Any], attributes: dict[str, object]) -> None:
    places = ["" if array is None else f"x{index}" for index, array in enumerate(inputs)]
    names, inputs = [name for name in places if name], [array for array in inputs if array is not None]
    node = helper.make_node(op, places, ["y"], name="node", **attributes)
    forward = session(model([node], names, inputs, [], "y"))
    trained = {name: array for name, array in zip(names, inputs) if array.dtype == np.float32}
    feeds = dict(zip(names, inputs))
    share = normal(*forward.run(["y"], feeds)[0].shape)
    scalar = [
        node,
        helper.make_node("Mul", ["y", "share"], ["shared"]),
        helper.make_node("ReduceSum", ["shared"], ["total"], keepdims=0),
    ]
    stored = model(scalar, [], [], [*zip(names, inputs), ("share", share)], "total")
    gradients = run(training_graph(stored, Options(loss="total", choice=Choice(wrt=list(trained)))), trained)
    for name, array in trained.items():
        direction = normal(*array.shape)
        ends = [forward.run(["y"], feeds | {name: array + step * direction})[0] for step in np.float32([-0.01, 0.01])]
        slope = ((ends[1] - ends[0]).astype(np.float64) * share).sum() / 0.02
        assert slope == pytest.approx((gradients[f"{name}_grad"] * direction).sum(), rel=1e-2, abs=1e-2)


def test_what_has_no_gradient_stays_a_constant() -> None:
    """As PyTorch's Softplus, which compares with a stored threshold."""
    nodes = [
        helper.make_node("Greater", ["x", "threshold"], ["large"]),
        helper.make_node("Softplus", ["x"], ["soft"]),
        helper.make_node("Where", ["large", "x", "soft"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0),
    ]
    stored = model(nodes, [], [], [("x", normal(3)), ("threshold", np.float32([20.0]))], "total")
    made = training_graph(stored, Options(loss="total"))
    assert [info.name for info in made.graph.input] == ["x"]
    (gradient,) = [run(made, {"x": np.float32([-30, 0, 30])})["x_grad"]]
    np.testing.assert_allclose(gradient, [0, 0.5, 1], atol=1e-6)


WRITTEN_OUT = {
    "log_sigmoid": [("Sigmoid", ["x"], "inner")],
    "log_add_exp": [("Exp", ["x"], "one"), ("Exp", ["w"], "other"), ("Add", ["one", "other"], "inner")],
}


@pytest.mark.parametrize("form", WRITTEN_OUT)
def test_logarithms_are_finite_where_pytorchs_are(form: str) -> None:
    """As losses of logits, which PyTorch's exporter writes as a Log of what becomes 0 or infinite."""
    x = np.float32([-200, -60, -1, 0, 2, 60, 200])
    w = np.zeros(7, np.float32) if form == "log_sigmoid" else x[::-1].copy()
    inner = [helper.make_node(kind, inputs, [output]) for kind, inputs, output in WRITTEN_OUT[form]]
    nodes = [
        *inner,
        helper.make_node("Log", ["inner"], ["log"]),
        helper.make_node("Add", ["log", "w"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0),
    ]
    made = training_graph(model(nodes, [], [], [("x", x), ("w", w)], "total"), Options(loss="total"))
    assert not {"Log", "Exp"} & {node.op_type for node in made.graph.node}
    found, wide, other = run(made, {"x": x, "w": w}), x.astype(np.float64), w.astype(np.float64)
    right = -np.logaddexp(0, -wide) if form == "log_sigmoid" else np.logaddexp(wide, other)
    slope = np.exp(-np.logaddexp(0, wide if form == "log_sigmoid" else other - wide))
    assert found["loss"] == pytest.approx((right + w).sum(), rel=1e-5)
    np.testing.assert_allclose(found["x_grad"], slope, rtol=1e-5, atol=1e-20)


def test_a_transposed_matrix_by_a_vector_is_right_in_a_default_session() -> None:
    """As in a spectral norm; onnxruntime 1.31 fuses the two ops to something else."""
    w, v = normal(4, 5), normal(4)
    nodes = [
        helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["turned", "v"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0),
    ]
    training = training_graph(model(nodes, [], [], [("w", w), ("v", v)], "total"), Options(loss="total"))
    found = run(training, {"w": w, "v": v})
    assert found["loss"] == pytest.approx((w.T @ v).sum(), rel=1e-4)
    np.testing.assert_allclose(found["w_grad"], np.repeat(v[:, None], 5, 1), rtol=1e-5)
    np.testing.assert_allclose(found["v_grad"], w.sum(1), rtol=1e-4, atol=1e-5)


CALL = "%{0} : [num_users=1] = call_function[target=torch.ops.aten.{1}.default](args = ({2}), kwargs = {{}})"


def called(node: onnx.NodeProto, op: str, given: str) -> onnx.NodeProto:
    """A node as PyTorch's exporter marks what it made of a call."""
    node.metadata_props.add(key="pkg.torch.onnx.fx_node", value=CALL.format(node.output[0], op, given))
    return node


def test_a_padding_row_is_not_trained() -> None:
    """PyTorch's embedding keeps the row of `padding_idx`; ONNX's Gather knows none, but the exporter notes the call."""
    gather = called(helper.make_node("Gather", ["w", "ids"], ["rows"]), "embedding", "%p_w, %ids, 2")
    nodes = [gather, helper.make_node("ReduceSum", ["rows"], ["total"], keepdims=0)]
    stored = model(nodes, [], [], [("w", normal(4, 3)), ("ids", np.array([[2, 1], [0, 2]]))], "total")
    found = run(training_graph(stored, Options(loss="total")), {"w": normal(4, 3)})["w_grad"]
    np.testing.assert_array_equal(found[:, 0], [1, 1, 0, 0])


def test_no_gradient_leads_through_what_the_module_detached() -> None:
    """w * detach(w) + v, whose gradient by w is w alone."""
    nodes = [
        called(helper.make_node("Identity", ["w"], ["detach"]), "detach", "%p_w,"),
        helper.make_node("Mul", ["w", "detach"], ["product"]),
        helper.make_node("Add", ["product", "v"], ["sum"]),
        helper.make_node("ReduceSum", ["sum"], ["total"], keepdims=0),
    ]
    w, v = normal(3), normal(3)
    training = training_graph(model(nodes, [], [], [("w", w), ("v", v)], "total"), Options(loss="total"))
    np.testing.assert_array_equal(run(training, {"w": w, "v": v})["w_grad"], w)


@pytest.mark.parametrize("smoothing", ["", ", None, 1, -100, 0.1"])
def test_label_smoothing_that_the_exporter_dropped_is_refused(smoothing: str) -> None:
    loss = helper.make_node("SoftmaxCrossEntropyLoss", ["w", "labels"], ["total"])
    nodes = [called(loss, "cross_entropy_loss", f"%linear, %labels{smoothing}")]
    stored = model(nodes, [], [], [("w", normal(4, 3)), ("labels", LABELS)], "total")
    if not smoothing:
        assert "w_grad" in run(training_graph(stored, Options(loss="total")), {"w": normal(4, 3)})
        return
    with pytest.raises(BadInput, match=r"dropped its label_smoothing=0\.1; in the module"):
        training_graph(stored, Options(loss="total"))


@pytest.mark.parametrize(
    "ignored, reduction, advice",
    [
        (3, "mean", r"n = \(labels != 3\)\.float\(\), \(1 - e\) \* cross_entropy\(x, labels, ignore_index=3\)"),
        (-100, "sum", r"write the smoothing out in the module"),
    ],
)
def test_advice_on_label_smoothing_counts_labels_as_the_module_does(ignored: int, reduction: str, advice: str) -> None:
    names = ["w", "labels"], ["total"]
    loss = helper.make_node("SoftmaxCrossEntropyLoss", *names, ignore_index=ignored, reduction=reduction)
    nodes = [called(loss, "cross_entropy_loss", f"%linear, %labels, None, 1, {ignored}, 0.1")]
    stored = model(nodes, [], [], [("w", normal(4, 3)), ("labels", LABELS)], "total")
    with pytest.raises(BadInput, match=advice):
        training_graph(stored, Options(loss="total"))


def test_numbers_lifted_by_pytorchs_exporter_are_not_trained() -> None:
    nodes = [
        helper.make_node("Mul", ["weight", "val_0"], ["scaled"]),
        helper.make_node("Add", ["scaled", "buffer"], ["moved"]),
        helper.make_node("ReduceSum", ["moved"], ["total"], keepdims=0),
    ]
    values = [("weight", normal(3)), ("val_0", np.array(0.5, np.float32)), ("buffer", normal(3))]
    plain = model(nodes, [], [], values, "total")
    marked = onnx.ModelProto()
    marked.CopyFrom(plain)
    for name, kind in (("weight", "PARAMETER"), ("buffer", "BUFFER")):
        info = helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])
        info.metadata_props.add(key="pkg.torch.export.graph_signature.InputSpec.kind", value=kind)
        marked.graph.value_info.append(info)
    trained = [[i.name for i in training_graph(m, Options(loss="total")).graph.input] for m in (plain, marked)]
    assert trained == [["weight", "val_0", "buffer"], ["weight"]]


def model(
    nodes: list[onnx.NodeProto],
    names: list[str],
    inputs: list[np.ndarray],
    stored: list[tuple[str, np.ndarray]],
    output: str,
) -> onnx.ModelProto:
    kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in inputs]
    given = [helper.make_tensor_value_info(name, kind, a.shape) for name, kind, a in zip(names, kinds, inputs)]
    initializers = [numpy_helper.from_array(array, name) for name, array in stored]
    made = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "forms", given, [made], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def session(made: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def run(made: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    running = session(made)
    return dict(zip([output.name for output in running.get_outputs()], running.run(None, feeds)))
