"""Sessions of plans in files: made from files that another process writes, with the bits of the rewritten model."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import remat_cli as remat
from remat_cli import children
from remat_cli.onnx_graph.stored import WEIGHTS, put_apart
from remat_cli.training.state import classes_of, frame_of

DATA = Path(__file__).parents[2] / "data"


def wide() -> onnx.ModelProto:
    """A model whose weights are large enough to be mapped."""
    random = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(random.random((64, 64), np.float32), f"w{k}") for k in range(3)]
    nodes = [onnx.helper.make_node("MatMul", [f"x{k}" if k else "x", f"w{k}"], [f"x{k + 1}"]) for k in range(3)]
    nodes.append(onnx.helper.make_node("Add", ["x1", "x3"], ["y"]))
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [16, 64]) for name in ("x", "y"))
    graph = onnx.helper.make_graph(nodes, "wide", [x], [y], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def run(model: onnx.ModelProto) -> bytes:
    feeds = {"x": np.ones((16, 64), np.float32)}
    made: bytes = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0].tobytes()
    return made


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "m.plan.json"
    remat.solve(wide(), minimize="peak", work_limit=200, cache=False).save(path)
    return path


@pytest.mark.slow
def test_a_session_is_made_of_files_that_are_gone_then(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    before = sorted(tmp_path.iterdir())
    session = remat.session(plan)
    assert session.run(None, {"x": np.ones((16, 64), np.float32)})[0].tobytes() == run(wide())
    assert not list((tmp_path / "temporary").iterdir())
    assert sorted(tmp_path.iterdir()) == before


def test_where_no_other_process_can_be_had_it_is_made_here(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children.sys, "executable", "/no/such/python")
    session = remat.session(plan)
    assert session.run(None, {"x": np.ones((16, 64), np.float32)})[0].tobytes() == run(wide())


def test_what_the_other_process_refuses_is_refused_here_in_its_words(plan: Path) -> None:
    (plan.parent / "m.onnx").write_bytes(wide().SerializeToString() + b"\x52\x00")
    with pytest.raises(remat.BadInput, match="has changed since the plan was made"):
        remat.session(plan)
    with pytest.raises(remat.BadInput, match=r"cannot read .*none\.plan\.json"):
        remat.session(plan.parent / "none.plan.json")


def test_weights_put_apart_are_the_same(tmp_path: Path) -> None:
    model = wide()
    put_apart(model, tmp_path)
    onnx.save(model, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size < 2000
    assert all(entry.value == WEIGHTS for t in model.graph.initializer for entry in t.external_data[:1])
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert session.run(None, {"x": np.ones((16, 64), np.float32)})[0].tobytes() == run(wide())
    written = (tmp_path / WEIGHTS).read_bytes()
    put_apart(model, tmp_path)  # what is apart stays
    assert (tmp_path / WEIGHTS).read_bytes() == written


def test_a_frame_has_all_that_a_step_is_bound_to() -> None:
    model = remat.grad(DATA / "torch" / "language_train_whole.onnx", optimizer="sgd")
    frame = frame_of(model)
    assert not frame.graph.node
    assert (list(frame.graph.input), list(frame.graph.output)) == (list(model.graph.input), list(model.graph.output))
    assert classes_of(frame) == 12
    assert frame_of(frame) == frame
