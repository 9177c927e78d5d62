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


def attention(layers: int, heads: int = 4, places: int = 48, width: int = 4) -> onnx.ModelProto:
    """Layers whose queries, keys and values come of one product, with a bias for how far places are apart: a cut of
    places reaches them all."""
    rng, whole = np.random.default_rng(0), heads * width
    held = [
        numpy_helper.from_array(np.full(3, whole, np.int64), "thirds"),
        numpy_helper.from_array(np.array([places, heads, width]), "by head"),
        numpy_helper.from_array(np.array([places, whole]), "joined"),
        numpy_helper.from_array(rng.standard_normal((width, places)).astype(np.float32), "far"),
    ]
    nodes = []
    for k in range(layers):
        held.append(numpy_helper.from_array(rng.standard_normal((whole, 3 * whole)).astype(np.float32), f"w{k}"))
        nodes += [
            helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"all{k}"]),
            helper.make_node("Split", [f"all{k}", "thirds"], [f"q{k}", f"k{k}", f"v{k}"], axis=1),
            *(helper.make_node("Reshape", [f"{one}{k}", "by head"], [f"{one}{k} apart"]) for one in "qkv"),
            helper.make_node("Transpose", [f"q{k} apart"], [f"queries{k}"], perm=[1, 0, 2]),
            helper.make_node("Transpose", [f"k{k} apart"], [f"keys{k}"], perm=[1, 2, 0]),
            helper.make_node("Transpose", [f"v{k} apart"], [f"values{k}"], perm=[1, 0, 2]),
            helper.make_node("MatMul", [f"queries{k}", f"keys{k}"], [f"scores{k}"]),
            helper.make_node("MatMul", [f"queries{k}", "far"], [f"bias{k}"]),
            helper.make_node("Add", [f"scores{k}", f"bias{k}"], [f"sum{k}"]),
            helper.make_node("Softmax", [f"sum{k}"], [f"shares{k}"]),
            helper.make_node("MatMul", [f"shares{k}", f"values{k}"], [f"seen{k}"]),
            helper.make_node("Transpose", [f"seen{k}"], [f"seen{k} apart"], perm=[1, 0, 2]),
            helper.make_node("Reshape", [f"seen{k} apart", "joined"], [f"x{k + 1}"]),
        ]
    x, y = (helper.make_tensor_value_info(name, 1, [places, whole]) for name in ("x0", f"x{layers}"))
    graph = helper.make_graph(nodes, "attention", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_keys_that_come_in_pieces_are_read_whole_where_queries_are_cut() -> None:
    model = attention(3)
    graph = ingest_content(model.SerializeToString())
    found = narrowed(graph, graph.values["scores0"].bytes // 8)
    piece = graph.values["scores0"].bytes // 8
    assert not found.wider(piece)
    wide = {op.name for op in found.made.graph.ops for name in op.reads if name.startswith("scores")}
    read = [op for op in found.made.graph.ops if op.name in wide]
    assert {op.op_type for op in read} == {"Add"}  # as they were made: no pieces of other regions are joined
    feeds = values_of(model)
    before, after = run(model, feeds), run(found.made.graph.model, feeds)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


def test_regions_that_are_apart_are_all_cut() -> None:
    """As the layers of an encoder are, of which there may be two dozen."""
    count, nodes, inputs, outputs = 24, [], [], []
    for k in range(count):
        inputs.append(helper.make_tensor_value_info(f"x{k}", 1, [64, 8]))
        outputs.append(helper.make_tensor_value_info(f"y{k}", 1, [64, 8]))
        nodes.append(helper.make_node("Transpose", [f"x{k}"], [f"t{k}"]))
        nodes.append(helper.make_node("MatMul", [f"x{k}", f"t{k}"], [f"scores{k}"]))
        nodes.append(helper.make_node("MatMul", [f"scores{k}", f"x{k}"], [f"y{k}"]))
    graph = helper.make_graph(nodes, "apart", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    whole = ingest_content(model.SerializeToString())
    found = narrowed(whole, whole.values["scores0"].bytes // 4)
    assert len(found.regions) == count
    assert not [name for name in found.made.graph.values if name in {f"scores{k}" for k in range(count)}]


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
