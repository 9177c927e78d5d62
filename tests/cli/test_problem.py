"""`remat problem` by its contract: the file, the figures, the exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from remat_cli.formats.problemfile import read
from tests.cli.running import Command
from tests.remat_cli.ingest.models import model, node, save, value


def test_the_problem_stands_beside_the_model(remat: Command, data: Path, tmp_path: Path) -> None:
    shutil.copy(data / "torch_mlp.onnx", tmp_path)
    ran = remat("problem", "torch_mlp.onnx")
    assert ran.code == 0
    assert "64 ops" in ran.out
    assert "estimates" in ran.err
    assert len(read(tmp_path / "torch_mlp.problem.json").nodes) == 64


def test_its_json_agrees_with_what_solve_says_of_the_model(remat: Command, data: Path) -> None:
    ran = remat("problem", data / "torch_mlp.onnx", "--json", "-o", "p.problem.json")
    solved = remat("solve", "p.problem.json", "--budget", "100%", "--method", "checkpoint-all", "--json").object
    assert ran.object["problem"] == "p.problem.json"
    for key in ("resident", "baseline_peak", "baseline_cost"):
        assert ran.object[key] == solved[key]


def test_dimensions_are_bound(remat: Command, tmp_path: Path) -> None:
    save(model([node("Relu", ["x"], ["y"])], [value("x", "batch", 3)], ["y"]), tmp_path)
    ran = remat("problem", "m.onnx")
    assert (ran.code, ran.out) == (3, "")
    assert "--dim batch=N" in ran.err
    assert ran.err.count("\n") == 1
    assert not Path("m.problem.json").exists()
    assert remat("problem", "m.onnx", "--dim", "batch=4", "--json").object["resident"] == 48
    assert remat("problem", "m.onnx", "--dim", "batch=4", "--dim", "bath=4").code == 2


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x09"])
def test_no_model(remat: Command, content: bytes) -> None:
    Path("m.onnx").write_bytes(content)
    ran = remat("problem", "m.onnx")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("remat: m.onnx")
    assert not Path("m.problem.json").exists()


def test_bad_problems_by_way_of_solve(remat: Command) -> None:
    Path("p.problem.json").write_text(
        json.dumps({"format": "remat-problem/9", "values": [], "nodes": [], "outputs": []})
    )
    ran = remat("solve", "p.problem.json", "--budget", "1GB")
    assert ran.code == 3
    assert "remat-problem/9" in ran.err
