"""A plan file whose figures were changed by hand is refused by all that read it; the file as it was made is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Command

ASKED = {
    "planned": ["torch_cnn.onnx", "--budget", "70%"],
    "stock": ["torch_cnn.onnx", "--budget", "80%", "--runtime", "stock"],
    "least": ["torch_mlp.onnx", "--minimize", "peak"],
    "as it is": ["torch_mlp.onnx", "--budget", "100%"],
    "a problem": ["torch_cnn.problem.json", "--budget", "70%"],
}
# what no replay can tell: the question, and what is fitted to a runtime, or nobody relies on
BELIEVED = {"budget", "seed", "limits.seconds", "limits.gap", "limits.work", "promises.itself", "placement.bound"}


def _figures(said: dict[str, Any], where: str = "") -> Iterator[tuple[dict[str, Any], str, str]]:
    """The object that holds each figure, its name there, and its name in the file."""
    for name, value in said.items():
        if isinstance(value, dict) and name not in ("dims", "model", "costs"):
            yield from _figures(value, f"{where}{name}.")
        elif isinstance(value, int | float):
            yield said, name, f"{where}{name}"


def _solved(folder: Path, data: Path, remat: Command, asked: list[str]) -> dict[str, Any]:
    shutil.copy(data / asked[0].replace(".problem.json", ".onnx"), folder)
    if asked[0].endswith(".problem.json"):
        assert remat("problem", "torch_cnn.onnx", "-q").code == 0
    ran = remat("solve", *asked, "--work-limit", "2000", "-q", "-o", "m.plan.json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(Path("m.plan.json").read_text())
    return found


@pytest.mark.parametrize("kind", ASKED)
def test_figures_are_held_to_the_program(
    kind: str, tmp_path: Path, data: Path, remat: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = _solved(tmp_path, data, remat, ASKED[kind])
    reader = ("show",) if kind == "a problem" else ("emit", "-o", "m.remat.onnx")
    assert remat(*reader, "m.plan.json").code == 0
    tried = 0
    for place, name, whole in _figures(said):
        if whole in BELIEVED or "bound" in whole or (kind in ("a problem", "stock") and whole.startswith("promises")):
            continue
        old = place[name]
        place[name] = old + 1
        Path("changed.plan.json").write_text(json.dumps(said))
        place[name] = old
        ran = remat(*reader, "changed.plan.json")
        assert ran.code == 3, (whole, ran)
        assert "is not as it was made" in ran.err
        assert ran.err.count("\n") == 1
        tried += 1
    assert tried >= 5


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"cost": 1}, "'cost' is 1"),
    ({"bound": 1e15}, "'bound' is"),
    ({"bound_any_order": 1e15}, "'bound_any_order' is"),
    ({"bound": -5}, "'bound' is -5"),
    ({"budget": 1000}, "over its budget of 1000"),
    ({"status": "optimal", "bound": 1, "bound_any_order": 1}, "it is called optimal"),
    ({"status": "infeasible"}, "'status' is 'infeasible'"),
    ({"graph": "as run"}, "of the ops 'as run'"),
    ({"dims": {"nope": 3}}, "there is no dimension 'nope'"),
    ({"in_place": {"nope": "loss"}}, "nope"),
]


@pytest.mark.parametrize(("change", "says"), CHANGES, ids=lambda thing: str(thing)[:30])
def test_every_reader_refuses(
    change: dict[str, Any], says: str, tmp_path: Path, data: Path, remat: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = _solved(tmp_path, data, remat, ASKED["planned"])
    Path("m.plan.json").write_text(json.dumps({**said, **change}))
    for reader in ("emit", "verify", "show"):
        ran = remat(reader, "m.plan.json")
        assert ran.code == 3, (reader, ran)
        assert says in ran.err
        assert ran.err.count("\n") == 1


def test_places_of_another_program_are_refused(
    tmp_path: Path, data: Path, remat: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = _solved(tmp_path, data, remat, ASKED["planned"])
    said["placement"]["allocations"][0][1] += 64
    Path("m.plan.json").write_text(json.dumps(said))
    ran = remat("emit", "m.plan.json")
    assert ran.code == 3
    assert "places" in ran.err


def test_a_known_plan_that_repairs_made_dearer_is_not_called_optimal(
    tmp_path: Path, data: Path, remat: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan for more memory fits less too, but for its places; what was computed again for these costs something."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(data / "torch_cnn.onnx", "m.onnx")
    assert remat("profile", "m.onnx", "--estimate", "cpu", "-q").code == 0
    assert remat("solve", "m.onnx", "--budget", "95%", "--method", "evict", "--work-limit", "2000", "-q").code == 0
    found = remat("solve", "m.onnx", "--budget", "80%", "--work-limit", "2000", "--json").object
    assert found["cost"] > found["bound_any_order"]
    assert found["status"] == "feasible"
    assert remat("emit", found["plan"], "-q").code == 0
