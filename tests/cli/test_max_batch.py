"""`remat max-batch`: what it says fits is run, and what it says does not is asked of `solve`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from remat_cli.actions.largest import _last
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


def test_the_largest_batch_runs_and_the_next_does_not_fit(remat: Command, tmp_path: Path) -> None:
    model, budget = perceptron(tmp_path / "m.onnx"), 500_000
    asked = ("max-batch", model, "--budget", budget, "--max-overhead", "0%", "--baselines", "checkpoint-all")
    found = remat(*asked, "--time-limit", "60s", "--json").object
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
        ran = remat("solve", "one.onnx", "--budget", budget, "--method", method, "--time-limit", "3s", "--json")
        assert (ran.code == 0 and ran.object["overhead"] == 0) == fits


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
        "20s",
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
        (("--budget", "1MB", "--method", "best"), 2, "no method 'best'"),
        (("--budget", "20KB"), 4, "not even the least size, 1"),
    ],
)
def test_what_cannot_be(remat: Command, tmp_path: Path, given: tuple[str, ...], code: int, says: str) -> None:
    ran = remat("max-batch", perceptron(tmp_path / "m.onnx"), *given, "--baselines", "")
    assert ran.code == code, ran.err
    assert says in ran.err
    assert not list(tmp_path.glob("*.plan.json"))


@given(st.integers(0, 300), st.integers(1, 300))
def test_the_last_size_for_which_something_holds(last: int, guess: int) -> None:
    tried: list[int] = []

    def holds(size: int) -> bool:
        tried.append(size)
        return size <= last

    assert _last(holds, guess) == last
    assert len(tried) <= 4 + 2 * max(1, abs(last - guess)).bit_length()
