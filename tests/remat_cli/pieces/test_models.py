"""Whole models in pieces: the same results on onnxruntime, gradients as near to float64 as the original's.

The witness in float64 is onnx's reference evaluator, which shares no code with the runtime.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import remat_cli as remat
from remat_cli.ingest import graph_of, ingest_content
from remat_cli.model.graph import Graph
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.pieces.finding import narrowed
from remat_cli.zoo.build import build
from tests.remat_cli.pieces.test_table import run
from tests.sampling import few

SMALL = {
    "gpt2": {"layers": 1, "hidden": 16, "heads": 2, "seq": 6, "batch": 5, "vocabulary": 61},
    "mlp": {"batch": 700, "hidden": 16},
    "cnn": {"batch": 5, "image": 16},
    "unet": {"batch": 3, "image": 16, "width": 4},
}
FORWARD = {
    "unet": {"image": 64, "width": 4, "batch": 1},
    "densenet121": {"image": 32, "batch": 3},
    "efficientnet-b0": {"image": 64, "batch": 3},
}


def values_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    graph = ingest_content(model.SerializeToString())
    return feeds_of(graph, ops_of(graph))


def widest(model: onnx.ModelProto) -> int:
    graph = ingest_content(model.SerializeToString())
    return max(graph.values[name].bytes for op in graph.ops for name in op.writes)


def in_double(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float64 in the place of float32."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.value_info[:]
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    for tensor in wide.graph.initializer:
        if tensor.data_type == single:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = double
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == single:
                attribute.i = double
            if attribute.name == "value" and attribute.t.data_type == single:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float64)))
    return wide


def off(found: np.ndarray, right: np.ndarray) -> float:
    """The norm of the error."""
    return float(np.linalg.norm(found.astype(np.float64) - right))


@pytest.mark.parametrize("name", few(SMALL, 1))
def test_gradients_in_pieces_are_as_near_to_float64(name: str) -> None:
    model = remat.grad(build(name, **SMALL[name]))
    pieces = narrow(model)
    assert len(pieces.graph.node) > len(model.graph.node)
    feeds = values_of(model)
    whole, cut = run(model, feeds), run(pieces, feeds)
    wide = {key: array.astype(np.float64) if array.dtype == np.float32 else array for key, array in feeds.items()}
    right = ReferenceEvaluator(in_double(model)).run(None, wide)
    for one, other, true in zip(whole, cut, right, strict=True):
        assert off(other, true) <= 2 * off(one, true) + 1e-6 * float(np.linalg.norm(true)) + 1e-9


def narrow(model: onnx.ModelProto) -> onnx.ModelProto:
    """In pieces as far as can be: some weights' gradients are as wide as what is asked for."""
    return narrow_graph(model).model


def narrow_graph(model: onnx.ModelProto) -> Graph:
    graph = ingest_content(model.SerializeToString())
    return narrowed(graph, widest(model) // 12).made.graph


@pytest.mark.parametrize("name", few(SMALL, 1))
def test_sizes_are_those_that_are_inferred(name: str) -> None:
    """What was written down of the pieces, against onnx's inference on the model without any declared size."""
    made = narrow_graph(remat.grad(build(name, **SMALL[name])))
    bare = onnx.ModelProto()
    bare.CopyFrom(made.model)
    del bare.graph.value_info[:]
    again = graph_of(bare, made.path)
    assert {name: again.values[name] for name in made.values} == made.values
    assert [(op.name, op.reads, op.writes) for op in made.ops] == [(op.name, op.reads, op.writes) for op in again.ops]
    assert made.resident == again.resident


@pytest.mark.parametrize("name", few(FORWARD, 1))
def test_forward_models_in_pieces_give_the_same(name: str) -> None:
    model = build(name, training=False, **FORWARD[name])
    pieces = remat.in_pieces(model, largest_value=widest(model) // 2)
    assert widest(pieces) <= widest(model) // 2
    feeds = values_of(model)
    for one, other in zip(run(model, feeds), run(pieces, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_value_that_cannot_be_cut_is_named() -> None:
    image = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [8, 8])
    node = helper.make_node("Det", ["x"], ["y"], name="det")
    square = helper.make_node("Inverse", ["x"], ["z"], name="inverse", domain="com.microsoft")
    outputs = [helper.make_tensor_value_info("y", 1, []), helper.make_tensor_value_info("z", 1, [8, 8])]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(
        helper.make_graph([node, square], "g", [image], outputs), opset_imports=opsets, ir_version=10
    )
    with pytest.raises(remat.BadInput, match="'z', which Inverse 'inverse' makes"):
        remat.in_pieces(model, largest_value=100)


def averaged(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with one number for its output, so that nothing wide must stay whole."""
    graph = model.graph
    graph.node.append(helper.make_node("ReduceMean", [graph.output[0].name], ["mean"], keepdims=0, name="mean"))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("mean", onnx.TensorProto.FLOAT, []))
    return model


def test_what_no_cutting_reaches_is_refused_before_any_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("ops were cut")

    monkeypatch.setattr("remat_cli.pieces.finding.cut", refuse)
    model = build("unet", training=False, **FORWARD["unet"])
    with pytest.raises(remat.BadInput, match=r"output 'logits', .* stays whole"):
        remat.in_pieces(model, largest_value=3)
    with pytest.raises(remat.BadInput, match=r"at least [\d,]+ pieces"):
        remat.in_pieces(averaged(model), largest_value=4)


def test_pieces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Borders of windows can ask for more and more pieces."""
    model = averaged(build("unet", training=False, **FORWARD["unet"]))
    asked = widest(model) // 2
    assert widest(remat.in_pieces(model, largest_value=asked)) <= asked
    monkeypatch.setattr("remat_cli.pieces.finding.MOST_PIECES", 8)
    with pytest.raises(remat.BadInput, match="cannot be cut"):
        remat.in_pieces(model, largest_value=asked)
