"""Norms written out give what the kernel gives, and run in pieces by rows."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from remat_cli.actions.shrinking.norms import written_out
from remat_cli.ingest import ingest_content
from remat_cli.pieces.finding import narrowed

SHAPE = [1, 8, 24, 20]


def model(groups: int, opset: int, last: bool) -> onnx.ModelProto:
    """Between two pointwise ops, or at the end: a norm of each channel, or of some together, as exporters write it."""
    rng = np.random.default_rng(0)
    held = [numpy_helper.from_array(rng.standard_normal(groups or 8).astype(np.float32), name) for name in ("s", "b")]
    held.append(numpy_helper.from_array(np.array([1, groups, -1], np.int64), "flat"))
    held.append(numpy_helper.from_array(np.array(SHAPE, np.int64), "whole"))
    nodes = [helper.make_node("Exp", ["x"], ["wide"])]
    if groups:
        nodes.append(helper.make_node("Reshape", ["wide", "flat"], ["apart"]))
        nodes.append(helper.make_node("InstanceNormalization", ["apart", "s", "b"], ["normed"], epsilon=1e-3))
        nodes.append(helper.make_node("Reshape", ["normed", "whole"], ["joined"]))
    else:
        nodes.append(helper.make_node("InstanceNormalization", ["wide", "s", "b"], ["joined"], epsilon=1e-3))
    if not last:
        nodes.append(helper.make_node("Tanh", ["joined"], ["bounded"]))
        held.append(numpy_helper.from_array(rng.standard_normal((1, 8, 3, 3)).astype(np.float32), "w"))
        nodes.append(helper.make_node("Conv", ["bounded", "w"], ["y"]))  # of all channels: these cannot be cut
    x = helper.make_tensor_value_info("x", 1, SHAPE)
    y = onnx.ValueInfoProto(name="joined" if last else "y")
    y.type.tensor_type.elem_type = 1
    graph = helper.make_graph(nodes, "norm", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def ran(model: onnx.ModelProto) -> np.ndarray:
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    return np.asarray(onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0])


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("groups", [0, 2, 8])
def test_what_is_written_out_gives_the_same(groups: int, opset: int, last: bool) -> None:
    given = model(groups, opset, last)
    made = written_out(ingest_content(given.SerializeToString()))
    assert made is not None
    assert "InstanceNormalization" not in {node.op_type for node in made.graph.node}
    np.testing.assert_allclose(ran(made), ran(given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [0, 2])
def test_it_runs_in_pieces_by_rows(groups: int) -> None:
    given = model(groups, 18, last=False)
    made = written_out(ingest_content(given.SerializeToString()))
    assert made is not None
    graph = ingest_content(made.SerializeToString())
    found = narrowed(graph, graph.values["wide"].bytes // 3)
    assert {node.op_type for node in found.made.graph.model.graph.node} >= {"ReduceSum"}
    tops = [op for op in found.made.graph.ops if op.op_type == "Tanh"]
    assert len(tops) >= 3
    assert all(found.made.graph.values[op.outputs[0]].shape[:2] == (1, 8) for op in tops)  # rows, not channels
    np.testing.assert_allclose(ran(found.made.graph.model), ran(given), rtol=1e-4, atol=1e-5)


def test_a_norm_of_little_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    given = model(0, 18, last=False)
    monkeypatch.setattr("remat_cli.actions.shrinking.norms.SHARE", 1.5)
    assert written_out(ingest_content(given.SerializeToString())) is None
