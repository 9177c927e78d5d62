"""What a wrong command or file gets: its exit code, one clear line, no traceback, and no file half-written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
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


def planned(folder: Path, data: Path, remat: Command) -> None:
    mlp(folder, data)
    assert (
        remat("solve", "m.onnx", "--budget", "100%", "--method", "checkpoint-all", "-q", "-o", "m.plan.json").code == 0
    )
    assert remat("emit", "m.plan.json", "-o", "n.onnx", "-q").code == 0


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


def begins(content: bytes) -> Given:
    return lambda folder, data, remat: (folder / "m.onnx").write_bytes(content) and None


def newer(folder: Path, data: Path, remat: Command) -> None:
    planned(folder, data, remat)
    plan = (folder / "m.plan.json").read_text()
    (folder / "m.plan.json").write_text(plan.replace("remat-plan/1", "remat-plan/2"))


def half_a_plan(folder: Path, data: Path, remat: Command) -> None:
    (folder / "m.plan.json").write_text('{"format": "remat-plan/1", "model": {"path": "m.onnx", "sha256": ""}}')


def manifest(folder: Path, data: Path, remat: Command) -> None:
    mlp(folder, data)
    (folder / "m.yaml").write_text("format: remat-batch/1\nmodels: [m.onnx]\nbudgets: [100%]\n")


def certificate(folder: Path, data: Path, remat: Command) -> None:
    (folder / "c.json").write_text('{"format": "remat-certificate/1", "costs": []}')


def unknown_op(folder: Path, data: Path, remat: Command) -> None:
    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy"]
    node = onnx.helper.make_node("Frob", ["x"], ["y"], name="frob", domain="acme")
    graph = onnx.helper.make_graph([node], "g", value[:1], value[1:])
    onnx.save(onnx.helper.make_model(graph), folder / "m.onnx")


def out_of_bounds(folder: Path, data: Path, remat: Command) -> None:
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4 - 3 * (name == "y")]) for name in "xy"
    ]
    beyond = onnx.helper.make_tensor("beyond", onnx.TensorProto.INT64, [1], [100])
    node = onnx.helper.make_node("Gather", ["x", "beyond"], ["y"], name="gather")
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:], [beyond])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9), folder / "m.onnx"
    )


def linked(folder: Path, data: Path, remat: Command) -> None:
    (folder / "m.onnx").symlink_to("gone.onnx")


def without_costs(folder: Path, data: Path, remat: Command) -> None:
    profiled(folder, data, remat)
    assert remat("solve", "m.onnx", "--budget", "100%", "-q", "-o", "m.plan.json").code == 0
    (folder / "m.costs.yaml").unlink()


def broken_yaml(folder: Path, data: Path, remat: Command) -> None:
    mlp(folder, data)
    (folder / "m.costs.yaml").write_text("schema: [1,\n")


SOLVE = ("solve", "m.onnx", "--budget", "80%", "--time-limit", "10m")
ROWS: dict[str, tuple[Given, tuple[object, ...], int, str]] = {
    "unknown method": (model, (*SOLVE, "--method", "magic"), 2, "no method 'magic'"),
    "no budget": (model, ("solve", "m.onnx"), 2, "--budget"),
    "not a size": (model, ("solve", "m.onnx", "--budget", "lots"), 2, "is not a"),
    "not a time": (model, (*SOLVE[:4], "--time-limit", "soon"), 2, "is not a"),
    "not an age": (nothing, ("cache", "prune", "--older", "soon"), 2, "write 30d, 2w or 12h"),
    "not a dimension": (model, (*SOLVE, "--dim", "batch"), 2, "--dim batch=32"),
    "not an input": (model, (*SOLVE, "--in-place", "x1=y1"), 2, "the model has no input 'x1'"),
    "among devices": (model, (*SOLVE, "-o", "/dev/m.plan.json"), 3, "name a file elsewhere with -o"),
    "no method at all": (model, ("sweep", "m.onnx", "--methods", ""), 2, "methods: say at least one"),
    "foreign option": (model, (*SOLVE, "--method", "checkpoint-all", "--slots", 3), 2, "--slots"),
    "nothing to solve": (nothing, ("solve", "--budget", "1GB"), 2, "remat profile"),
    "several cost files": (two_profiles, ("solve", "--budget", "1GB"), 2, "m.costs.yaml, n.costs.yaml"),
    "no such model": (nothing, SOLVE, 3, "m.onnx"),
    "truncated": (truncated, SOLVE, 3, "m.onnx"),
    "not ONNX": (text, SOLVE, 3, "m.onnx is not an ONNX model: it is text that begins 'this is no model'"),
    "empty": (begins(b""), SOLVE, 3, "it is empty"),
    "a pickle": (begins(b"\x80\x02}q\x00."), ("grad", "m.onnx"), 3, "it is PyTorch's: export the module"),
    "a zip archive": (begins(b"PK\x03\x04" + bytes(40)), ("show", "m.onnx"), 3, "it is PyTorch's: export the module"),
    "a pointer of LFS": (begins(b"version https://git-lfs.github.com/spec/v1\n"), SOLVE, 3, "git lfs pull"),
    "a size without its B": (model, ("solve", "m.onnx", "--budget", "10M"), 2, "did you mean '10MB'?"),
    "a plan of a newer format": (newer, ("emit", "m.plan.json"), 3, "a newer remat wrote"),
    "a plan without its costs": (without_costs, ("emit", "m.plan.json"), 3, "bring it back, or run 'remat solve'"),
    "costs of another model": (of_another_model, SOLVE, 3, "another model"),
    "negative cost": (edited("ns: ", "ns: -"), SOLVE, 3, "negative"),
    "absurd cost": (edited("ns: ", "ns: 9999999999999999"), SOLVE, 3, "absurd"),
    "costs that are no YAML": (broken_yaml, SOLVE, 3, "not YAML"),
    "no folder to write to": (model, (*SOLVE, "-o", "none/p.json"), 3, "none"),
    "budget below inputs": (model, ("solve", "m.onnx", "--budget", "1MB"), 4, "inputs and weights"),
    "plan that is not there": (nothing, ("emit", "m.plan.json"), 3, "m.plan.json"),
    "unknown command": (nothing, ("slove",), 2, "did you mean solve?"),
    "nothing like a command": (nothing, ("zzz",), 2, "there are grad, profile"),
    "unknown option": (model, (*SOLVE, "--budjet"), 2, "--budget"),
    "a folder": (model, ("solve", ".", "--budget", "80%"), 2, "is a directory"),
    "not a share": (model, (*SOLVE, "--gap", "x"), 2, "write 0.1%"),
    "a negative size": (model, ("solve", "m.onnx", "--budget=-5"), 2, "write 16GB"),
    "--from of a method that has none": (
        planned,
        (*SOLVE, "--method", "evict", "--from", "m.plan.json", "-o", "n.plan.json"),
        2,
        "--from",
    ),
    "a plan over the one it starts from": (
        planned,
        (*SOLVE, "--from", "m.plan.json", "-o", "m.plan.json"),
        2,
        "would be lost",
    ),
    "--relaxation of a method that has none": (model, (*SOLVE, "--relaxation", "paper"), 2, "--relaxation"),
    "--csv of one method": (model, (*SOLVE, "--csv"), 2, "--method all"),
    "--max-overhead without its --minimize": (model, (*SOLVE, "--max-overhead", "5%"), 2, "--minimize peak"),
    "--minimize peak by another method": (model, (*SOLVE, "--minimize", "peak", "--method", "evict"), 2, "leave out"),
    "plan over the model": (model, (*SOLVE, "-o", "m.onnx"), 2, "would be lost"),
    "costs over the model": (model, ("profile", "m.onnx", "--estimate", "cpu", "-o", "m.onnx"), 2, "would be lost"),
    "problem over the model": (model, ("problem", "m.onnx", "-o", "m.onnx"), 2, "would be lost"),
    "training graph over the model": (model, ("grad", "m.onnx", "-o", "m.onnx"), 2, "would be lost"),
    "rewritten model over the model": (planned, ("emit", "m.plan.json", "-o", "m.onnx"), 2, "would be lost"),
    "rewritten model over the plan": (planned, ("emit", "m.plan.json", "-o", "m.plan.json"), 2, "would be lost"),
    "picture over the plan": (planned, ("show", "m.plan.json", "--plot", "m.plan.json"), 2, "is no picture"),
    "solving a plan": (planned, ("solve", "m.plan.json", "--budget", "80%"), 3, "a plan already"),
    "the gradient of a plan": (planned, ("grad", "m.plan.json"), 3, "is not an ONNX model"),
    "the gradient of a cost file": (profiled, ("grad", "m.costs.yaml"), 3, "is not an ONNX model"),
    "the gradient of nothing": (nothing, ("grad", "m.onnx"), 3, "cannot read m.onnx"),
    "a dimension that is not there": (model, ("grad", "m.onnx", "--dim", "bacth=3"), 2, "no dimension 'bacth'"),
    "emitting a model": (model, ("emit", "m.onnx"), 3, "is not a plan, or truncated: it is not even text"),
    "a model for a certificate": (planned, ("check", "m.onnx", "m.plan.json"), 3, "it is not even text"),
    "a plan that is not whole": (half_a_plan, ("show", "m.plan.json"), 3, "is missing; run 'remat solve' again"),
    "an option of others": (model, (*SOLVE, "--method", "milp", "--samples", 3), 2, "one of lp-walks, lp-rounding"),
    "a link to nowhere": (linked, SOLVE, 3, "it is a link to gone.onnx, where no file is"),
    "budgets that go down": (model, ("sweep", "m.onnx", "--budgets", "90%..60%/3"), 2, "first, 60%..90%/3"),
    "a budget of nothing": (model, ("solve", "m.onnx", "--budget", "0%"), 4, "2.781MB); try --minimize peak"),
    "showing a cost file": (profiled, ("show", "m.costs.yaml"), 3, "make one with 'remat solve'"),
    "a plan over its own certificate": (
        model,
        (*SOLVE, "--certificate", "n.json", "-o", "n.json"),
        2,
        "n.json would be written twice",
    ),
    "a curve over its folder": (
        model,
        ("sweep", "m.onnx", "--plot", "c.svg", "-o", "c.svg"),
        2,
        "c.svg would be written twice",
    ),
    "a table over its report": (
        manifest,
        ("batch", "m.yaml", "--report", "r.json", "--csv", "r.json"),
        2,
        "r.json would be written twice",
    ),
    "two forms of show": (model, ("show", "m.onnx", "--breakdown", "--statements"), 2, "printed one at a time"),
    "solving a certificate": (
        certificate,
        ("solve", "c.json", "--budget", "80%"),
        3,
        "c.json: its format is 'remat-certificate/1', not 'remat-problem/1'",
    ),
    "a tolerance that is no number": (planned, ("verify", "m.plan.json", "--rtol", "nan"), 2, "is not a number"),
    "a tolerance without end": (planned, ("verify", "m.plan.json", "--atol", "inf"), 2, "is not a number"),
    "places of an op without a kernel": (
        unknown_op,
        ("places", "m.onnx"),
        3,
        "onnxruntime cannot make a session of the model",
    ),
    "places of a model that does not run": (
        out_of_bounds,
        ("places", "m.onnx"),
        3,
        "onnxruntime cannot run the model: Non-zero status code returned while running Gather node",
    ),
    "feeding a model": (planned, ("verify", "m.plan.json", "--model", "n.onnx", "--feeds", "m.onnx"), 3, "numpy.savez"),
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
    assert len(ran.err.strip().splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == before
