"""The Python API and the command are two faces of one thing: the same plans, models and errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import remat_cli as api
from tests.cli.running import Command


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(data / "torch_cnn.onnx", tmp_path / "m.onnx"))


def test_a_path_and_a_model_in_memory_give_what_the_command_gives(remat: Command, model: Path) -> None:
    told = remat("solve", model, "--budget", "95%", "--method", "evict", "--json", "-o", "m.plan.json").object
    command = json.loads(Path("m.plan.json").read_text())
    for given in (model, str(model), onnx.load(model)):
        plan = api.solve(given, budget="95%", method="evict")
        assert (plan.status, plan.peak, plan.cost) == (told["status"], told["peak"], told["cost"])
        assert list(plan.recorded.program) == command["program"]
    remat("emit", "m.plan.json", "-q")
    nodes = [node.name for node in onnx.load("m.remat.onnx").graph.node]
    assert [node.name for node in api.emit("m.plan.json").graph.node] == nodes
    assert [node.name for node in api.emit(api.load_plan("m.plan.json")).graph.node] == nodes


def test_a_model_in_memory_is_left_as_it_is(model: Path) -> None:
    held = onnx.load(model)
    before = held.SerializeToString(deterministic=True)
    plan = api.solve(held, budget="95%", method="evict", costs=api.profile(held, estimate="cpu"))
    api.emit(plan)
    assert held.SerializeToString(deterministic=True) == before


def test_a_session_of_a_plan_computes_what_the_model_does(model: Path) -> None:
    plan = api.solve(onnx.load(model), budget="95%", method="evict")
    report = api.verify(plan)
    assert report.ok
    assert report.report.strict.after.first is not None
    assert report.report.strict.after.first <= plan.budget
    names = {entry.name for entry in api.session(plan).get_inputs()}
    assert names == set(plan.subject.graph.inputs if plan.subject.graph else ())


@pytest.mark.slow
def test_a_session_is_of_the_kind_that_its_plan_is_for(model: Path) -> None:
    """onnxruntime's options themselves tell: a plan for default sessions is not run in a strict one."""
    for kind, by_default in (("remat", False), ("stock", True)):
        plan = api.solve(onnx.load(model), budget="100%", method="evict", runtime=kind)
        assert api.session(plan).get_session_options().enable_mem_pattern is by_default


def test_what_is_in_memory_is_saved_along(remat: Command, model: Path, tmp_path: Path) -> None:
    held = onnx.load(model)
    plan = api.solve(held, budget="95%", method="evict", costs=api.profile(held, estimate="h100"))
    (tmp_path / "out").mkdir()
    plan.save("out/step.plan.json")
    assert sorted(path.name for path in Path("out").iterdir()) == ["step.costs.yaml", "step.onnx", "step.plan.json"]
    again = api.load_plan("out/step.plan.json")
    assert again.recorded.program == plan.recorded.program
    assert remat("show", "out/step.plan.json", "--json").object["cost"] == plan.cost
    assert remat("solve", "out/step.onnx", "--budget", "95%", "--method", "evict", "--json").object["cost"] == plan.cost
    plan.save("out/step.plan.json")
    Path("out/step.onnx").write_bytes(b"another")
    Path("out/step.plan.json").unlink()
    plan.save("out/step.plan.json")
    assert Path("out/step.onnx").read_bytes() == b"another"
    assert api.load_plan("out/step.plan.json").subject.path.name == "step.model.onnx"
    assert Path("out/step.model.costs.yaml").is_file()


def test_the_command_s_errors(remat: Command, model: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(api.Infeasible, match="alone take") as none:
        api.solve(model, budget=1000)
    ran = remat("solve", model, "--budget", 1000)
    assert (ran.code, ran.err.strip()) == (none.value.code, f"remat: {none.value}")
    assert none.value.least_peak
    assert none.value.least_peak > 1000
    with pytest.raises(api.NoPlan, match="within 5B"):
        api.solve(data / "checkmate" / "linear8.problem.json", budget=5, method="checkpoint-all")
    for wrong in ({}, {"budget": "much"}, {"budget": "80%", "method": "best"}, {"budget": "80%", "slots": 4}):
        with pytest.raises(api.Usage):
            api.solve(model, **wrong)
    with pytest.raises(api.BadInput, match="no such file"):
        api.solve(tmp_path / "none.onnx", budget="80%")
    with pytest.raises(api.BadInput, match="the model in memory"):
        api.solve(onnx.ModelProto(), budget="80%")
    other = api.profile(api.emit(api.solve(model, budget="95%", method="evict")), estimate="cpu")
    with pytest.raises(api.BadInput, match="made for another model"):
        api.solve(model, budget="80%", costs=other)
    with pytest.raises(api.Usage, match="no device 'abacus'"):
        api.profile(model, estimate="abacus")
    with pytest.raises(api.Usage, match="no optimizer 'best'"):
        api.grad(model, optimizer="best")


def test_wrong_feeds_are_refused(model: Path) -> None:
    plan = api.solve(model, budget="95%", method="evict")
    with pytest.raises(api.BadInput, match="the feeds: there is no array for input"):
        api.verify(plan, feeds={})
    assert plan.subject.graph
    wrong = {name: np.zeros(3, np.float32) for name in plan.subject.graph.inputs}
    with pytest.raises(api.BadInput, match="the feeds: input"):
        api.verify(plan, feeds=wrong)


def test_a_problem_file_is_solved_and_not_emitted(data: Path) -> None:
    plan = api.solve(data / "checkmate" / "linear8.problem.json", budget=4)
    assert plan.status.startswith("optimal")
    assert plan.bound == plan.cost
    assert plan.gap == 0
    with pytest.raises(api.BadInput, match="no ONNX model"):
        api.emit(plan)


@pytest.mark.slow
def test_weights_kept_apart_are_found(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of a model's file; in the working directory for a model in memory."""
    monkeypatch.chdir(tmp_path)
    Path("apart").mkdir()
    held = onnx.load(model)
    weight = held.graph.input[0]
    shape = [dim.dim_value for dim in weight.type.tensor_type.shape.dim]
    held.graph.initializer.append(onnx.numpy_helper.from_array(np.full(shape, 0.1, np.float32), weight.name))
    held.graph.input.remove(weight)
    onnx.save(held, "apart/m.onnx", save_as_external_data=True, location="m.weights", size_threshold=1024)
    by_path = api.solve("apart/m.onnx", budget="95%", method="evict")
    assert api.session(by_path) is not None
    monkeypatch.chdir("apart")
    in_memory = api.solve(onnx.load("m.onnx", load_external_data=False), budget="95%", method="evict")
    assert in_memory.recorded.program == by_path.recorded.program
    assert api.session(in_memory) is not None
    assert api.verify(in_memory).ok
