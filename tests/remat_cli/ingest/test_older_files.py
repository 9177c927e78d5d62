"""Files of other times: older opsets, none named, dimensions of -1, CastLike. ONNX Runtime runs them as they stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import remat_cli as remat
from remat_cli.errors import BadInput
from remat_cli.ingest import ingest


def saved(path: Path, nodes: list[onnx.NodeProto], shape: list[int | str], opset: int, domain: str = "") -> Path:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y"))
    graph = helper.make_graph(nodes, "older", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=7), path)
    return path


@pytest.mark.parametrize("opset", [7, 9, 11, 12])
def test_a_file_of_an_older_opset_is_planned_and_has_its_bits(opset: int, tmp_path: Path) -> None:
    """The meaning of Softmax over an axis changed at opset 13."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=1),
        helper.make_node("Squeeze", ["a"], ["b"], axes=[0]),
        helper.make_node("Unsqueeze", ["b"], ["c"], axes=[0]),
        helper.make_node("Add", ["c", "x"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, [1, 3, 4, 5], opset)
    plan = remat.solve(path, minimize="peak", work_limit=200, cache=False)
    x = np.random.default_rng(0).random((1, 3, 4, 5), np.float32)
    made = remat.session(plan).run(None, {"x": x})[0]
    assert made.tobytes() == onnxruntime.InferenceSession(path).run(None, {"x": x})[0].tobytes()


def test_what_cannot_be_upgraded_is_said_without_the_converters_source(tmp_path: Path) -> None:
    nodes = [helper.make_node("Pad", ["x"], ["y"], paddings=[0, 0], mode="constant")]
    with pytest.raises(BadInput, match=r"m\.onnx: the model's opset 1 cannot be upgraded: No Adapter[^/]*Pad") as error:
        ingest(saved(tmp_path / "m.onnx", nodes, [4], 1))
    assert "Assertion" not in str(error.value)


def test_a_file_without_standard_ops_need_not_name_their_version(tmp_path: Path) -> None:
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    graph = ingest(saved(tmp_path / "m.onnx", [node], [2, 3], 1, "ai.onnx.ml"), {})
    assert graph.values["y"].shape == (2, 3)
    node = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(BadInput, match="names no version"):
        ingest(saved(tmp_path / "n.onnx", [node], [2, 3], 1, "ai.onnx.ml"), {})


def test_dimensions_that_are_open_are_asked_for_at_once(tmp_path: Path) -> None:
    node = [helper.make_node("Relu", ["x"], ["y"])]
    path = saved(tmp_path / "m.onnx", node, [-1, 3, "height"], 18)
    with pytest.raises(BadInput, match="--dim x:0=N --dim height=N"):
        ingest(path)
    assert ingest(path, {"x:0": 2, "height": 5}).values["y"].shape == (2, 3, 5)


def test_a_castlike_is_a_cast(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Constant", [], ["two"], value_int=2),
        helper.make_node("CastLike", ["two", "x"], ["twos"]),
        helper.make_node("Mul", ["x", "twos"], ["y"]),
    ]
    graph = ingest(saved(tmp_path / "m.onnx", nodes, [2, 3], 18))
    assert [op.op_type for op in graph.ops] == ["Cast", "Mul"]
    assert graph.expanded


def test_a_model_that_would_take_other_shapes_is_refused() -> None:
    """The converter takes the batch away from a Scan of opset 8, and from its inputs, so that no feeds fitted."""
    with pytest.raises(BadInput, match="'initial' would have another shape"):
        ingest(Path(__file__).parents[2] / "data" / "onnx_tests" / "scan_sum.onnx")
