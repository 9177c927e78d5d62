"""What onnxruntime fuses, on models of which it is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.ingest import ingest
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.fusing import as_fused, find_fused_kernels
from solvers.methods.mincut.traffic import traffic_of


def model(path: Path, *, read_twice: bool) -> Path:
    """Conv, Relu, Exp: onnxruntime puts a Relu into the Conv before it, if nothing else reads that."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Exp", ["r"], ["e"], "exp"),
        helper.make_node("Add", ["e", "c" if read_twice else "r"], ["y"], "add"),
    ]
    weight = numpy_helper.from_array(np.ones((2, 2, 1, 1), np.float32), "w")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 4, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_a_relu_goes_into_its_conv(tmp_path: Path) -> None:
    kernels = find_fused_kernels(ingest(model(tmp_path / "m.onnx", read_twice=False), {}))
    assert set(kernels) == {"conv", "relu"}
    assert len(set(kernels.values())) == 1


def test_not_if_something_else_reads_the_conv(tmp_path: Path) -> None:
    assert find_fused_kernels(ingest(model(tmp_path / "m.onnx", read_twice=True), {})) == {}


def test_traffic_as_onnxruntime_fuses(tmp_path: Path) -> None:
    subject = as_fused(load_subject(model(tmp_path / "m.onnx", read_twice=False), None, {}))
    value, weight = 4 * 2 * 16, 4 * 4
    alone, fused = (traffic_of(subject.problem, range(4), fusion) for fusion in ("none", "runtime"))
    assert alone.total == (value + weight + value) + 2 * value + 2 * value + 3 * value
    assert fused.total == alone.total - 2 * value  # the Conv's result is neither written nor read
    assert (alone.kernels, fused.kernels) == (4, 3)


def test_a_model_that_cannot_run_here(data: Path) -> None:
    with pytest.raises(BadInput, match="what it fuses"):
        find_fused_kernels(ingest(data / "ort_mlp.onnx", {}))


def test_a_bare_problem_has_no_ops(data: Path) -> None:
    with pytest.raises(BadInput, match="bare problem"):
        as_fused(load_subject(data / "checkmate" / "linear4.problem.json", None, {}))
