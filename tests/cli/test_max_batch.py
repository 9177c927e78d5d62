"""`remat max-batch`: what it says fits is run, and what it says does not is asked of `solve`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.actions.largest import SizeQuestion, find_largest
from remat_cli.actions.scaling import At, SizedStep, scale_step
from remat_cli.model.quantities import parse_budget
from remat_cli.planning.subjects.subject import Subject
from solvers.clock import FOREVER_SECONDS
from solvers.problem import Limits
from tests.ample import ample
from tests.cli.running import Command

WIDTHS = (64, 64, 64, 64, 10)


def perceptron(path: Path) -> Path:
    """A forward model whose batch is called `n`."""
    drawn, nodes, weights, x = np.random.default_rng(0), [], [], "x"
    for layer, shape in enumerate(pairwise(WIDTHS)):
        values = drawn.standard_normal(shape).astype(np.float32) / 8
        weights.append(numpy_helper.from_array(values, f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{layer}"], [f"h{layer}"], name=f"product{layer}"))
        nodes.append(helper.make_node("Tanh", [f"h{layer}"], [f"t{layer}"], name=f"tanh{layer}"))
        x = f"t{layer}"
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", w])
        for name, w in (("x", WIDTHS[0]), (x, WIDTHS[-1]))
    ]
    graph = helper.make_graph(nodes, "perceptron", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def step(path: Path) -> Path:
    """A training graph with a symbolic batch: the loss is the sum of tanh(x w), the gradient that of w."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        helper.make_node("Tanh", ["y"], ["t"], name="tanh"),
        helper.make_node("ReduceSum", ["t"], ["loss"], name="sum", keepdims=0),
        helper.make_node("Mul", ["t", "t"], ["square"], name="square"),
        helper.make_node("Sub", ["one", "square"], ["slope"], name="slope"),
        helper.make_node("Transpose", ["x"], ["turned"], name="turned", perm=[1, 0]),
        helper.make_node("MatMul", ["turned", "slope"], ["w_grad"], name="gradient"),
    ]
    given = [("x", ["n", 32]), ("w", [32, 32])]
    made = [("loss", []), ("w_grad", [32, 32])]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in every]
        for every in (given, made)
    )
    one = numpy_helper.from_array(np.array(1, np.float32), "one")
    graph = helper.make_graph(nodes, "step", inputs, outputs, [one])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.mark.slow
def test_the_largest_batch_runs_and_the_next_does_not_fit(remat: Command, tmp_path: Path) -> None:
    model, budget = perceptron(tmp_path / "m.onnx"), 500_000
    asked = (
        "max-batch",
        model,
        "--budget",
        budget,
        "--max-overhead",
        "0%",
        "--baselines",
        "checkpoint-all",
        "--no-measure",
    )
    found = remat(*asked, "--time-limit", "10m", "--json").object
    size = found["batch"]
    assert (found["status"], found["next"]["batch"], found["next"]["status"]) == ("proved", size + 1, "infeasible")
    assert found["below"]["batch"] == size + 1
    assert found["overhead"] == 0
    assert 0 < found["baselines"]["checkpoint-all"] <= size
    assert remat("verify", found["plan"], "-q").code == 0  # it runs, within the budget
    for batch, method, fits in (
        (size, "auto", True),
        (size + 1, "auto", False),
        (found["baselines"]["checkpoint-all"], "checkpoint-all", True),
        (found["baselines"]["checkpoint-all"] + 1, "checkpoint-all", False),
    ):
        assert remat("grad", model, "--batch", batch, "-q", "-o", "one.onnx").code == 0
        ran = remat("solve", "one.onnx", "--budget", budget, "--method", method, "--work-limit", "1M", "--json")
        assert (ran.code == 0 and ran.object["overhead"] == 0) == fits
    less = [300_000 if part == budget else part for part in asked]
    again = remat(*less, "--time-limit", "10m", "-o", found["plan"], "--json")
    assert "held a plan for another question" in again.err
    assert again.object["plan"] == found["plan"]
    assert remat("show", again.object["plan"], "--json").object["budget"] == 300_000


def test_a_training_graph_as_far_as_nothing_fits(remat: Command, tmp_path: Path) -> None:
    model = step(tmp_path / "step.onnx")
    asked = (
        "max-batch",
        model,
        "--budget",
        "100KB",
        "--max-overhead",
        "300%",
        "--baselines",
        "",
        "--time-limit",
        "10m",
        "--no-measure",
    )
    found = remat(*asked, "--json").object
    plan, size = Path(found["plan"]), found["batch"]
    assert plan.name == f"step.n{size}.plan.json"
    assert found["dim"] == "n"
    assert found["status"] == "proved"
    assert remat("verify", plan, "-q").code == 0
    ran = remat("solve", model, "--dim", f"n={size + 1}", "--budget", "100KB", "-o", "x.plan.json")
    assert ran.code == 4  # proved
    eights = remat(*asked, "--step", 8, "--dim", "n=max", "--json").object
    assert eights["batch"] == size // 8 * 8
    assert eights["next"]["batch"] == eights["batch"] + 8


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (("--budget", "75%"), 2, "in bytes"),
        (("--budget", "1MB", "--dim", "n=max", "--dim", "m=max"), 2, "one dimension"),
        (("--budget", "1MB", "--dim", "m=max"), 2, "no free dimension 'm'"),
        (("--budget", "1MB", "--estimate", "cpu", "--profile", "2,4"), 2, "leave all but one out"),
        (("--budget", "1MB", "--estimate", "cpu", "--measure"), 2, "leave out --costs and --estimate"),
        (("--budget", "1MB", "--method", "best"), 2, "no method 'best'"),
        (("--budget", "20KB"), 4, "not even the least size, 1"),
    ],
)
def test_what_cannot_be(remat: Command, tmp_path: Path, given: tuple[str, ...], code: int, says: str) -> None:
    ran = remat("max-batch", perceptron(tmp_path / "m.onnx"), *given, "--baselines", "")
    assert ran.code == code, ran.err
    assert says in ran.err
    assert not list(tmp_path.glob("*.plan.json"))


@pytest.mark.slow
def test_what_is_measured_at_the_size_that_comes_out_is_what_the_plan_is_made_for(tmp_path: Path) -> None:
    asked, limits = SizeQuestion(budget=parse_budget("500KB"), share=0.0, baselines=()), Limits(ample())
    steps = scale_step(perceptron(tmp_path / "m.onnx"), SizedStep())
    on_paper = find_largest(steps.at, asked, limits)
    heard: list[list[int]] = []

    def measured(sizes: Sequence[int], _: float) -> At:
        """Every op works in 40 KB more than was thought, whatever the size."""
        heard.append(list(sizes))

        def at(size: int) -> Subject:
            thought = steps.at(size)
            nodes = tuple(replace(node, workspace=node.workspace + 40_000) for node in thought.problem.nodes)
            return thought.solving(replace(thought.problem, nodes=nodes))

        return at

    found = find_largest(steps.at, asked, limits, measured=measured)
    assert on_paper.size in heard[0]
    assert found.size in heard[-1]
    assert found.size < on_paper.size
    assert found.plan.subject.problem == measured([], 0)(found.size).problem
    assert found.proved
    later = find_largest(steps.at, asked, limits, measured=lambda *_: steps.at)
    assert (later.size, later.plan.notes) == (on_paper.size, on_paper.plan.notes)


def test_ops_are_measured_where_it_is_this_machine_that_counts(tmp_path: Path) -> None:
    model = perceptron(tmp_path / "m.onnx")
    assert scale_step(model, SizedStep(estimate="v100")).measured is None
    assert scale_step(model, SizedStep(here=False)).measured is None
    measured = scale_step(model, SizedStep()).measured
    assert measured is not None
    subject = measured([2, 4], FOREVER_SECONDS)(3)
    assert subject.measured
    assert subject.given_costs is not None
    assert subject.given_costs.ops["product0"].how == "measured"


def test_a_limit_of_work_finds_the_same_size_each_time(remat: Command, tmp_path: Path) -> None:
    model = step(tmp_path / "step.onnx")
    asked = ("max-batch", model, "--budget", "100KB", "--estimate", "cpu", "--work-limit", "1M", "--json", "--force")
    first, second = (remat(*asked).object for _ in range(2))
    assert first == second
    assert first["batch"] == remat("max-batch", model, *asked[2:6], "--json", "--force").object["batch"]


@pytest.mark.slow
def test_state_is_counted_once_unless_both_copies_are_asked_for(remat: Command, tmp_path: Path) -> None:
    """With the state held once a larger batch fits, and the plan of it runs so."""
    model = perceptron(tmp_path / "m.onnx")
    asked = (
        "max-batch",
        model,
        "--budget",
        "400KB",
        "--optimizer",
        "adamw",
        "--estimate",
        "cpu",
        "--work-limit",
        "50K",
    )
    once, twice = (remat(*asked, "--baselines", "", *flag, "--json").object for flag in ((), ("--no-in-place",)))
    assert once["batch"] > twice["batch"]
    assert json.loads(Path(once["plan"]).read_text())["in_place"]["w0_new"] == "w0"
    assert "in_place" not in json.loads(Path(twice["plan"]).read_text())
    assert remat("verify", once["plan"], "-q").code == 0
    ran = remat(*asked, "--no-in-place", "--in-place", "w0=w0_new")
    assert ran.code == 2
    assert "leave one of them out" in ran.err
