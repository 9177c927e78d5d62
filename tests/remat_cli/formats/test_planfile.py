"""Plans on disk: what is written is read back, what is wrong is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remat_cli.errors import BadInput
from remat_cli.formats import planfile
from remat_cli.formats.planfile import PlanFile, Searched, describe
from remat_cli.formats.program import name_program
from remat_cli.model.proved import Promise
from solvers.problem import Node, Problem
from solvers.schedule import evaluate

PROBLEM = Problem(
    (Node(1, (), (0,)), Node(2, (0,), (1,)), Node(1, (0, 1), (2, 3))), (8, 4, 2, 2), (2,), 1, frozenset({3})
)
NODES, VALUES = ("a", "b", "ä/c"), ("x", "y", "z", "w")


def plan_at(folder: Path) -> PlanFile:
    model = folder / "models" / "m.onnx"
    model.parent.mkdir(exist_ok=True)
    model.write_bytes(b"model")
    plan, outcome = evaluate(PROBLEM, (0, 1, 0, 2))
    return PlanFile(
        model=describe(model),
        costs=None,
        dims={"batch": 2},
        budget=20,
        method="milp",
        seed=0,
        limits=Searched(60.0, 0.001),
        status="optimal",
        bound=None,
        peak=outcome.peak,
        cost=outcome.cost,
        baseline_peak=15,
        baseline_cost=4,
        resident=1,
        promises=Promise(outcome.peak, None, 512),
        program=name_program(plan, NODES, VALUES),
        notes=("a note",),
    )


def test_round_trip(tmp_path: Path) -> None:
    plan, path = plan_at(tmp_path), tmp_path / "m.plan.json"
    planfile.write(plan, path)
    first = path.read_bytes()
    again = planfile.read(path)
    assert again.model.path.samefile(plan.model.path)
    assert again.program == plan.program
    planfile.write(again, path)
    assert path.read_bytes() == first
    statements, outcome = planfile.replay(again, PROBLEM, NODES, VALUES)
    assert statements.order() == (0, 1, 0, 2)
    assert (outcome.peak, outcome.cost) == (plan.peak, plan.cost)
    assert json.loads(first)["model"]["path"] == "models/m.onnx"


def test_an_older_file_may_name_its_allocator(tmp_path: Path) -> None:
    path = tmp_path / "m.plan.json"
    planfile.write(plan_at(tmp_path), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "allocator": "planned"}))
    assert planfile.read(path).session == "strict"


def test_a_folder_can_be_moved(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    plan = plan_at(tmp_path / "old")
    planfile.write(plan, tmp_path / "old" / "m.plan.json")
    (tmp_path / "old").rename(tmp_path / "new")
    planfile.check_source(planfile.read(tmp_path / "new" / "m.plan.json").model, "model")


def _set(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.__setitem__(key, value)


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (_set("format", "remat-plan/0"), "not a plan of format"),
        (_set("format", "remat-plan/9"), "a newer remat wrote"),
        (_set("budget", "20"), "'budget' is of the wrong type"),
        (_set("budget", True), "'budget' is of the wrong type"),
        (lambda data: data.pop("peak"), "'peak' is missing"),
        (_set("model", {"path": "m.onnx"}), "'model.sha256' is missing"),
        (_set("dims", {"batch": 0}), "dims['batch']"),
        (lambda data: data["program"].append({"op": "free"}), "'free' is no complete"),
        (lambda data: data["program"].insert(0, {"op": "allocate", "value": "x", "register": 0}), "program[0]"),
        (lambda data: data["program"].append(7), "]' is of the wrong type"),
        (_set("notes", "a note"), "'notes' is not a list"),
        (_set("bounds", 3), "'bounds' means nothing here"),
        (_set("promises", {"strict": 18, "lives": 3}), "'promises.lives' means nothing here"),
        (_set("seed", -1), "'seed' is -1"),
        (_set("seed", 10**400), "'seed' is 1"),
        (_set("bound", 10**400), "'bound' is 1"),
        (_set("bound", -0.5), "'bound' is -0.5"),
        (_set("status", "best"), "'status' is 'best'"),
        (_set("graph", "theirs"), "'graph' is 'theirs'"),
        (_set("allocator", "arena"), "capped arena"),
        (lambda data: data["program"][0].update(register=True), "register or size that is no whole number"),
        (lambda data: data["program"][0].update(bytes=10**400), "register or size that is no whole number"),
        (lambda data: data["program"][0].update(share=1), "'share' means nothing here"),
        (lambda data: data["program"][1].update(register=[True]), "other than registers"),
        (lambda data: data["program"].append({"op": "deallocate", "register": -1}), "no complete"),
    ],
)
def test_wrong_files_are_refused(break_it: Callable[[dict[str, Any]], None], says: str, tmp_path: Path) -> None:
    path = tmp_path / "m.plan.json"
    planfile.write(plan_at(tmp_path), path)
    data = json.loads(path.read_text())
    break_it(data)
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput) as error:
        planfile.read(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_plans_that_cannot_be_run_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.plan.json"
    planfile.write(plan_at(tmp_path), path)
    data = json.loads(path.read_text())
    data["program"] = data["program"][:-4]
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="cannot be run"):
        planfile.replay(planfile.read(path), PROBLEM, NODES, VALUES)
    with pytest.raises(BadInput, match="no value 'y'"):
        planfile.replay(planfile.read(path), PROBLEM, NODES, ("x", "q", "z", "w"))


def test_a_changed_model_is_refused(tmp_path: Path) -> None:
    plan = plan_at(tmp_path)
    plan.model.path.write_bytes(b"another")
    with pytest.raises(BadInput, match="has changed"):
        planfile.check_source(plan.model, "model")
    plan.model.path.unlink()
    with pytest.raises(BadInput, match="cannot read"):
        planfile.check_source(plan.model, "model")
