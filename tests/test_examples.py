"""The examples do what their READMEs say, from a shell, as a user would run them."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest

import remat_cli as remat

ROOT = Path(__file__).parents[1]


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment with `remat` and `python` on the PATH, a cache of its own, and short limits."""
    shim = tmp_path / "bin" / "remat"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m remat_cli "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return {**os.environ, **own, "LIMIT": "10s", "STEPS": "16"}


def run(example: str, folder: Path, environment: dict[str, str]) -> str:
    script = ROOT / "examples" / example / "run.sh"
    ran = subprocess.run(["sh", script], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_demo(tmp_path: Path, shell: dict[str, str]) -> None:
    said = run("demo", tmp_path, shell)
    assert said.count("same bytes") >= 2
    assert "computed again" in said


@pytest.mark.slow
def test_training_gives_the_same_losses(tmp_path: Path, shell: dict[str, str]) -> None:
    said = run("train", tmp_path, shell)
    assert "the same losses, bit for bit" in said
    assert "the loss fell" in said


def test_the_papers_networks_have_the_parameters_that_are_published() -> None:
    """Figure 3 of Checkmate, as committed: torchvision's counts, in float32."""
    published = {"vgg19": 143_667_240, "resnet152": 60_192_808, "densenet201": 20_013_928}
    with (ROOT / "examples" / "paper" / "figure3.csv").open(newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    for name, count in published.items():
        assert int(rows[name]["parameters"]) == 4 * count
    for row in rows.values():
        assert int(row["activations"]) > 5 * int(row["parameters"])


LIBRARIES = {"cpp": "REMAT_CPP_HEADERS", "csharp": "REMAT_CSHARP_LIBRARY"}  # where those are, by examples/*/run.py


@pytest.mark.parametrize("language, compiler", [("cpp", "g++"), ("csharp", "mcs")])
def test_the_readmes_lines_in_other_languages_run_as_they_stand(language: str, compiler: str) -> None:
    library = os.environ.get(LIBRARIES[language])
    if library is None or shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here, or {LIBRARIES[language]} does not say where onnxruntime's part is")
    command = [sys.executable, str(ROOT / "examples" / language / "run.py"), library, "torch_cnn"]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    row = json.loads(subprocess.run(command, env=own, capture_output=True, text=True, check=True).stdout)
    assert row["same"]
    assert row["within"]
    assert max(row["peak"]) < min(row["peak_before"])


@pytest.mark.slow
@pytest.mark.parametrize("language, compiler", [("cpp", "g++"), ("csharp", "mcs")])
def test_what_shrink_writes_for_c_runs_by_the_pages_lines(language: str, compiler: str, tmp_path: Path) -> None:
    """Its weights are more than it holds at once."""
    library = os.environ.get(LIBRARIES[language])
    if library is None or shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here, or {LIBRARIES[language]} does not say where onnxruntime's part is")
    model, mb, make = tmp_path / "m.onnx", 1 << 20, onnx.helper.make_node
    widths = [960 + 16 * k for k in range(13)]  # values of one size would share two buffers, and nothing be asked for
    values = [onnx.helper.make_tensor_value_info(f"x{k}", 1, [4, widths[k]]) for k in (0, 12)]
    weights = [np.full(pair, 1e-3, np.float32) for pair in pairwise(widths)]
    stored = [onnx.numpy_helper.from_array(array, f"w{k}") for k, array in enumerate(weights)]
    nodes = [make("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"]) for k in range(12)]
    graph = onnx.helper.make_graph(nodes, "m", values[:1], values[1:], stored)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), model)
    found = remat.shrink(model, target="c", max_slower="10000%", cache=False)
    small = next(file for file in found.files if file.suffix == ".onnx")
    command = [sys.executable, str(ROOT / "examples" / language / "shrunk.py"), library, str(small)]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    row = json.loads(subprocess.run(command, env=own, capture_output=True, text=True, check=True).stdout)
    assert row["same"]
    assert not row["missed"]
    assert row[language] < 36 * mb  # of 48
