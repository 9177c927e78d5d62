"""What a wrong command or file gets: its exit code, one clear line, no traceback, and no file half-written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Command


def mlp(folder: Path, data: Path) -> None:
    shutil.copy(data / "torch_mlp.onnx", folder / "m.onnx")


Given = Callable[[Path, Path, Command], None]


def nothing(folder: Path, data: Path, remat: Command) -> None:
    return None


def model(folder: Path, data: Path, remat: Command) -> None:
    mlp(folder, data)


def profiled(folder: Path, data: Path, remat: Command) -> None:
    mlp(folder, data)
    assert remat("profile", "m.onnx", "--estimate", "cpu", "-q").code == 0


def two_profiles(folder: Path, data: Path, remat: Command) -> None:
    profiled(folder, data, remat)
    shutil.copy(folder / "m.costs.yaml", folder / "n.costs.yaml")


def of_another_model(folder: Path, data: Path, remat: Command) -> None:
    profiled(folder, data, remat)
    shutil.copy(data / "torch_cnn.onnx", folder / "m.onnx")


def edited(old: str, new: str) -> Given:
    def change(folder: Path, data: Path, remat: Command) -> None:
        profiled(folder, data, remat)
        path = folder / "m.costs.yaml"
        head, ops = path.read_text().split("\nops:\n")
        assert old in ops
        path.write_text(head + "\nops:\n" + ops.replace(old, new, 1))

    return change


def truncated(folder: Path, data: Path, remat: Command) -> None:
    (folder / "m.onnx").write_bytes((data / "torch_mlp.onnx").read_bytes()[:5000])


def text(folder: Path, data: Path, remat: Command) -> None:
    (folder / "m.onnx").write_text("this is no model\n")


def broken_yaml(folder: Path, data: Path, remat: Command) -> None:
    mlp(folder, data)
    (folder / "m.costs.yaml").write_text("schema: [1,\n")


SOLVE = ("solve", "m.onnx", "--budget", "80%", "--time-limit", "5s")
ROWS: dict[str, tuple[Given, tuple[object, ...], int, str]] = {
    "unknown method": (model, (*SOLVE, "--method", "magic"), 2, "no method 'magic'"),
    "no budget": (model, ("solve", "m.onnx"), 2, "--budget"),
    "not a size": (model, ("solve", "m.onnx", "--budget", "lots"), 2, "is not a"),
    "not a time": (model, (*SOLVE[:4], "--time-limit", "soon"), 2, "is not a"),
    "not a dimension": (model, (*SOLVE, "--dim", "batch"), 2, "--dim batch=32"),
    "foreign option": (model, (*SOLVE, "--method", "checkpoint-all", "--slots", 3), 2, "--slots"),
    "nothing to solve": (nothing, ("solve", "--budget", "1GB"), 2, "remat profile"),
    "several cost files": (two_profiles, ("solve", "--budget", "1GB"), 2, "m.costs.yaml, n.costs.yaml"),
    "no such model": (nothing, SOLVE, 3, "m.onnx"),
    "truncated": (truncated, SOLVE, 3, "m.onnx"),
    "not ONNX": (text, SOLVE, 3, "m.onnx"),
    "costs of another model": (of_another_model, SOLVE, 3, "another model"),
    "negative cost": (edited("ns: ", "ns: -"), SOLVE, 3, "negative"),
    "absurd cost": (edited("ns: ", "ns: 9999999999999999"), SOLVE, 3, "absurd"),
    "costs that are no YAML": (broken_yaml, SOLVE, 3, "not YAML"),
    "no folder to write to": (model, (*SOLVE, "-o", "none/p.json"), 3, "none"),
    "budget below inputs": (model, ("solve", "m.onnx", "--budget", "1MB"), 4, "inputs and weights"),
    "plan that is not there": (nothing, ("emit", "m.plan.json"), 3, "m.plan.json"),
    "unknown command": (nothing, ("solv",), 2, "solv"),
}


@pytest.mark.parametrize("given, args, code, words", ROWS.values(), ids=ROWS)
def test_wrong_input(
    remat: Command, data: Path, tmp_path: Path, given: Given, args: tuple[object, ...], code: int, words: str
) -> None:
    given(tmp_path, data, remat)
    before = {path.name for path in tmp_path.iterdir()}
    ran = remat(*args)
    assert ran.code == code, ran.err
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""
    if code != 2:
        assert len(ran.err.strip().splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == before
