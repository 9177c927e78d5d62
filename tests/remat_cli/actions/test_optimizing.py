"""What onnxruntime makes of a model is a model of its own: with optimizations off it gives the optimized one's bits."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from profiles.strict import strict_options
from remat_cli.actions.optimizing import optimize_file
from remat_cli.errors import BadInput
from remat_cli.ingest import ingest
from remat_cli.model.signatures import feeds_of, ops_of


@pytest.mark.parametrize("name", ["torch_mlp.onnx", "torch_gpt2_eager.onnx"])
def test_the_same_bits_without_optimizing_again(name: str, data: Path, tmp_path: Path) -> None:
    model = Path(shutil.copy(data / name, tmp_path))
    made = optimize_file(model, "all")
    graph = ingest(made, {})
    assert {op.op_type for op in graph.ops} & {"FusedMatMul", "FusedGemm", "Gemm"}
    feeds = feeds_of(graph, ops_of(graph))
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    by_default, strict = (
        ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feeds)
        for path, options in ((model, quiet), (made, strict_options()))
    )
    assert all(np.array_equal(old, new, equal_nan=True) for old, new in zip(by_default, strict, strict=True))


def test_the_file_is_made_once_for_each_model(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    shutil.copy(data / "torch_mlp.onnx", model)
    first = optimize_file(model, "basic")
    assert first.name == "m.basic.onnx"
    before = first.stat().st_mtime_ns
    assert optimize_file(model, "basic").stat().st_mtime_ns == before
    shutil.copy(data / "torch_cnn.onnx", model)
    assert optimize_file(model, "basic").stat().st_mtime_ns > before


def test_what_cannot_be_loaded_is_refused(data: Path, tmp_path: Path) -> None:
    model = Path(shutil.copy(data / "ort_mlp.onnx", tmp_path))
    with pytest.raises(BadInput, match="cannot load"):
        optimize_file(model, "all")
