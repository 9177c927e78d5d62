"""Ops without a kernel of their own type: what runs in their place is planned, without being asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import remat_cli as remat
from tests.cli.running import Command

pytestmark = pytest.mark.usefixtures("short_rounds")

DEPTH, ROWS, WIDTH = 6, 256, 64


def _half_precision() -> onnx.ModelProto:
    """A training step of layers of MatMul and Tanh, all in float16, for which a CPU has few kernels."""
    nodes: list[NodeProto] = []

    def op(kind: str, reads: list[str], **more: object) -> str:
        name = more.pop("name", f"v{len(nodes)}")
        nodes.append(helper.make_node(kind, reads, [str(name)], f"op{len(nodes)}", **more))
        return str(name)

    held = ["x"]
    for layer in range(DEPTH):
        held.append(op("Tanh", [op("MatMul", [held[-1], f"w{layer}"])]))
    flow = op("Mul", [held[-1], "two"])
    for layer in reversed(range(DEPTH)):
        flow = op("Mul", [flow, op("Sub", ["one", op("Mul", [held[layer + 1]] * 2)])])
        op("MatMul", [op("Transpose", [held[layer]]), flow], name=f"w{layer}_grad")
        flow = op("MatMul", [flow, op("Transpose", [f"w{layer}"])])
    rng = np.random.default_rng(0)
    weights = {f"w{layer}": rng.normal(0, 0.1, (WIDTH, WIDTH)) for layer in range(DEPTH)}
    weights |= {"one": np.array(1.0), "two": np.array(2.0)}
    graph = helper.make_graph(
        nodes[:-2],
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [ROWS, WIDTH])],
        [helper.make_tensor_value_info(f"w{n}_grad", TensorProto.FLOAT16, [WIDTH, WIDTH]) for n in range(DEPTH)],
        [numpy_helper.from_array(value.astype(np.float16), name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.slow
def test_a_plan_is_found_by_itself_and_holds(remat: Command, tmp_path: Path) -> None:
    onnx.save(_half_precision(), tmp_path / "half.onnx")
    assert remat("profile", "half.onnx", "-q", "--time-limit", "5m").code == 0
    found = remat("solve", "half.onnx", "--budget", "70%", "--json", "-o", "half.plan.json")
    assert found.code == 0, found.err
    assert any("--optimize disabled writes it" in note for note in found.object["notes"])
    ran = remat("verify", "half.plan.json", "--json")
    assert ran.code == 0, ran.err
    strict = ran.object["strict"]
    assert strict["after"]["first"] <= found.object["budget"] < strict["before"]["first"]
    emitted = onnx.load(remat("emit", "half.plan.json", "--json").object["model"])
    assert "Cast" in {node.op_type for node in emitted.graph.node}


@pytest.mark.filterwarnings("ignore::remat_cli.RematWarning")
def test_a_session_of_it_gives_the_same_bits() -> None:
    import onnxruntime

    model = _half_precision()
    costs = remat.profile(model, time_limit=300, whole=True)
    plan = remat.solve(model, budget="70%", costs=costs, cache=False)
    feeds = {"x": np.random.default_rng(1).normal(0, 1, (ROWS, WIDTH)).astype(np.float16)}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    for got, wanted in zip(remat.session(plan).run(None, feeds), plain.run(None, feeds), strict=True):
        assert got.tobytes() == wanted.tobytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::remat_cli.RematWarning")
def test_without_a_profile_what_runs_is_planned_too(tmp_path: Path) -> None:
    """The plan of the file's own ops held half of what ran."""
    onnx.save(_half_precision(), tmp_path / "half.onnx")
    plan = remat.solve(tmp_path / "half.onnx", budget="80%", work_limit=20_000, cache=False)
    assert any("16 bits are computed in float32" in note for note in plan.notes)
    assert remat.verify(plan).report.strict.after.first <= plan.budget
