"""Models that do not do as foretold are named when they are profiled; subgraphs' memory is known from then on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.formats import planfile
from tests.cli.running import Command

pytestmark = pytest.mark.usefixtures("short_rounds")

SHAPE = [128, 64]


def _tensor(name: str, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, SHAPE)


def _choice() -> list[onnx.NodeProto]:
    """An If whose branch works in sixteen times what it reads."""
    wide = helper.make_node("Concat", ["a"] * 16, ["wide"], axis=0)
    back = helper.make_node("Slice", ["wide", "zero", "rows"], ["inner"])
    then = helper.make_graph([wide, back], "then", [], [_tensor("inner")])
    other = helper.make_graph([helper.make_node("Neg", ["a"], ["inner"])], "else", [], [_tensor("inner")])
    return [
        helper.make_node("ReduceSum", ["a"], ["sum"], name="sum", keepdims=0),
        helper.make_node("Equal", ["sum", "sum"], ["flag"], name="flag"),
        helper.make_node("If", ["flag"], ["b"], name="choice", then_branch=then, else_branch=other),
    ]


def _half() -> list[onnx.NodeProto]:
    """A CPU has no such kernel of half precision: onnxruntime puts Casts around it."""
    return [
        helper.make_node("Cast", ["a"], ["h"], name="down", to=TensorProto.FLOAT16),
        helper.make_node("Tan", ["h"], ["t"], name="half"),
        helper.make_node("Cast", ["t"], ["b"], name="up", to=TensorProto.FLOAT),
    ]


def made(path: Path, middle: list[onnx.NodeProto]) -> Path:
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"], name="first"),
        *middle,
        helper.make_node("Mul", ["a", "b"], ["y"], name="last"),
    ]
    weights = {"zero": np.array([0]), "rows": np.array([128]), "w": np.zeros(SHAPE, np.float32)}
    stored = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [_tensor("x")], [_tensor("y"), _tensor("w")], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.fixture
def costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "m.costs.yaml"


@pytest.mark.slow
def test_what_a_subgraph_works_in_is_reckoned_with(costs: Path, remat: Command) -> None:
    model = made(costs.with_name("m.onnx"), _choice())
    assert remat("profile", model, "--time-limit", "5m", "-q").code == 0
    assert "unlike" not in costs.read_text()
    assert (
        remat("solve", model, "--budget", "100%", "--work-limit", "1M", "-q", "-o", costs.with_name("m.plan.json")).code
        == 0
    )
    found = remat("verify", costs.with_name("m.plan.json"), "--json").object
    size = 4 * SHAPE[0] * SHAPE[1]
    assert found["strict"]["before"]["first"] > 18 * size
    assert abs(found["strict"]["before"]["first"] - found["predicted"]["strict"]) <= 256


@pytest.mark.slow
def test_what_is_not_as_foretold_is_named(costs: Path, remat: Command) -> None:
    model = made(costs.with_name("m.onnx"), _half())
    told = remat("profile", model, "--time-limit", "5m").err
    assert "does not run as predicted" in told
    assert any(word in told for word in ("'down'", "'half'", "'up'"))
    assert "does not run as predicted" in remat("solve", model, "--budget", "100%", "--work-limit", "1M").out


def test_functions_make_the_file_alone_hold_more(costs: Path, remat: Command) -> None:
    """What the runtime holds by writing functions out late is told; plans, which have none, hold what is predicted."""
    model, plan = costs.with_name("m.onnx"), costs.with_name("m.plan.json")
    inner = [helper.make_node("Exp", ["v"], ["e"]), helper.make_node("ReduceMean", ["e"], ["mean"], keepdims=1)]
    function = helper.make_function("own", "F", ["v"], ["mean"], inner, [helper.make_opsetid("", 18)])
    kinds = ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Ceil")
    nodes = [
        node
        for kind in kinds
        for node in (
            helper.make_node(kind, ["x"], [f"of {kind}"], name=kind),
            helper.make_node("F", [f"of {kind}"], [f"mean of {kind}"], domain="own", name=f"F of {kind}"),
        )
    ]
    nodes.append(helper.make_node("Sum", [f"mean of {kind}" for kind in kinds], ["y"], name="sum"))
    number = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])
    graph = helper.make_graph(nodes, "g", [_tensor("x")], [number])
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, functions=[function], ir_version=9), model)
    told = remat("profile", model, "--time-limit", "5m").err
    assert "onnxruntime runs functions' bodies late" in told
    assert "does not run as predicted" not in told
    said = remat("solve", model, "--budget", "100%", "--work-limit", "1M", "-o", plan).out
    assert "onnxruntime runs functions' bodies late" in said
    found = remat("verify", plan, "--json").object["strict"]
    assert found["after"]["first"] <= planfile.read(plan).peak + 256
    assert found["before"]["first"] > 2 * found["after"]["first"]


def test_what_does_not_run_here_is_named(costs: Path, remat: Command) -> None:
    """No kernel on a CPU adds to half-precision numbers at places; --json has the notes as well."""
    model = made(costs.with_name("m.onnx"), _sums_of_half())
    told = remat("profile", model, "--time-limit", "5m", "--json")
    assert any("was not run here" in note and "ScatterElements" in note for note in told.object["notes"])
    solved = remat("solve", model, "--budget", "100%", "--work-limit", "1M")
    assert "not verified, because the original model was not run here" in solved.out


def _sums_of_half() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Cast", ["a"], ["h"], name="down", to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["a"], ["places"], name="where", to=TensorProto.INT64),
        helper.make_node("ScatterElements", ["h", "places", "h"], ["t"], name="sums", reduction="add"),
        helper.make_node("Cast", ["t"], ["b"], name="up", to=TensorProto.FLOAT),
    ]


@pytest.mark.slow
def test_what_does_not_run_is_said_once(costs: Path, remat: Command) -> None:
    model = made(costs.with_name("m.onnx"), _sums_of_half())
    assert (
        remat("solve", model, "--budget", "100%", "--work-limit", "1M", "-q", "-o", costs.with_name("m.plan.json")).code
        == 0
    )
    verified = remat("verify", costs.with_name("m.plan.json"))
    assert verified.code == 6
    assert verified.err.count("ScatterElements opset") == 1
