"""`remat profile` by its contract: files, exit codes, figures, and no kernel touched twice."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from profiles.bench import OpBench
from profiles.costfile import dump, load
from profiles.probe import Probe
from profiles.signature import VIEWS
from remat_cli.ingest import ingest
from remat_cli.planning.loading import load_subject
from remat_cli.planning.stock.rewriting import rewrite_robustly
from solvers.plan import lower

pytestmark = pytest.mark.usefixtures("short_rounds")

QUICK = ("--device", "cpu", "--threads", "1", "--time-limit", "5m")


@pytest.fixture
def mlp(remat, data, tmp_path, monkeypatch):
    """A small training graph in the working directory, a cache of its own, and a machine that is as fast all day."""
    monkeypatch.setattr(OpBench, "probe", lambda _: Probe(1000, waited=1.0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copy(data / "torch_mlp.onnx", tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_every_op_gets_a_cost_that_was_measured(remat, mlp):
    assert remat("profile", "m.onnx", *QUICK).code == 0
    costs = load(mlp.with_name("m.costs.yaml"))
    graph = ingest(mlp)
    assert set(costs.ops) == {op.name for op in graph.ops}
    assert (costs.model, costs.sha256) == ("m.onnx", graph.sha256)
    for op in graph.ops:
        aliases = op.op_type in VIEWS and op.outputs[0] not in graph.outputs  # an output is a copy
        assert costs.ops[op.name].how == ("view" if aliases else "measured")
        assert (costs.ops[op.name].ns == 0) == aliases
    assert costs.total == pytest.approx(costs.whole.whole_graph, rel=0.01)


def test_a_second_run_touches_no_kernel_and_writes_the_same_bytes(remat, mlp, monkeypatch):
    first = remat("profile", "m.onnx", "--json", *QUICK).object
    assert first["measured_now"] == first["signatures"]
    before = mlp.with_name("m.costs.yaml").read_bytes()

    def touch(*_: object, **__: object) -> None:
        raise AssertionError("a kernel was touched")

    monkeypatch.setattr("profiles.bench.OpBench._start", touch)
    assert remat("profile", "m.onnx", "--json", *QUICK).object["measured_now"] == 0
    assert mlp.with_name("m.costs.yaml").read_bytes() == before


def test_a_plan_made_from_what_a_busy_machine_measured_says_so(remat, mlp):
    remat("profile", "m.onnx", *QUICK)
    path = mlp.with_name("m.costs.yaml")
    costs = load(path)
    path.write_text(dump(replace(costs, whole=replace(costs.whole, waited=0.62))))
    notes = remat("solve", "m.onnx", "--budget", "100%", "--json").object["notes"]
    assert sum("62%" in note for note in notes) == 1


def test_a_kill_loses_nothing_measured(remat, mlp, monkeypatch):
    measure, seen = OpBench.measure, []

    def killed(bench, signature, seconds):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(signature.key)
        return measure(bench, signature, seconds)

    monkeypatch.setattr(OpBench, "measure", killed)
    assert remat("profile", "m.onnx", *QUICK).code == 130
    assert not mlp.with_name("m.costs.yaml").exists()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(mlp.parent / "cache"))
    plan = remat("profile", str(mlp), "--dry-run", "--json", *QUICK).object
    assert plan["cached"] == 5


@pytest.mark.slow
def test_clones_cost_what_their_originals_do(remat, mlp):
    """A graph made from a profiled one, with ops under other names, needs no new measurement."""
    remat("profile", "m.onnx", *QUICK)
    model = onnx.load(mlp)
    for node in model.graph.node:
        node.name += "__remat_1"
    clone = onnx.NodeProto()
    clone.CopyFrom(next(node for node in model.graph.node if node.op_type == "MatMul"))
    clone.name, clone.output[0] = "again", "again"
    model.graph.node.append(clone)
    onnx.save(model, mlp.with_name("m.remat.onnx"))
    assert remat("profile", "m.remat.onnx", "--json", *QUICK).object["measured_now"] == 0
    before, after = load(mlp.with_name("m.costs.yaml")), load(mlp.with_name("m.remat.costs.yaml"))
    assert all(after.ops[f"{name}__remat_1"].ns == cost.ns for name, cost in before.ops.items())
    assert after.total > before.total


@pytest.mark.slow
def test_a_rewritten_graph_needs_no_new_measurement(remat, mlp):
    """Clones of a LayerNorm that leave its statistics out, of a cast weight behind a guard; anchors, hidden shapes."""
    onnx.save(normalised(), mlp)
    first = remat("profile", "m.onnx", "--json", *QUICK).object
    assert first["measured_now"] == first["signatures"]
    graph = ingest(mlp)
    subject = load_subject(mlp, None, {})
    order = [index for op in range(len(graph.ops)) for index in range(op + 1)]
    emitted = rewrite_robustly(graph, subject.problem, lower(subject.problem, order))
    onnx.save(emitted.model, "r.onnx")
    assert emitted.clones > 5
    assert any("__guard" in node.name for node in emitted.model.graph.node)
    assert any(node.op_type == "LayerNormalization" and len(node.output) == 1 for node in emitted.model.graph.node)
    found = remat("profile", "r.onnx", "--json", *QUICK).object
    assert found["measured_now"] == 0
    again = load(mlp.with_name("r.costs.yaml"))
    assert not [name for name, cost in again.ops.items() if cost.how == "estimated" and cost.ns > 5000]
    norms = [cost.alone for name, cost in again.ops.items() if name.startswith("norm")]
    assert len(norms) > 1
    assert len(set(norms)) == 1


def normalised():
    """A product, its LayerNorm with statistics that are read, and a weight that is cast on the way."""
    size = TensorProto.FLOAT
    nodes = [
        helper.make_node("Cast", ["half"], ["w"], name="cast", to=size),
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("LayerNormalization", ["h", "scale"], ["n", "mean", "inverse"], name="norm"),
        helper.make_node("Relu", ["n"], ["r"], name="relu"),
        helper.make_node("Add", ["mean", "inverse"], ["statistics"], name="statistics"),
        helper.make_node("MatMul", ["r", "w"], ["p"], name="product2"),
        helper.make_node("Add", ["p", "n"], ["y"], name="add"),
    ]
    weights = [
        numpy_helper.from_array(np.full((64, 64), 0.1, np.float16), "half"),
        numpy_helper.from_array(np.ones(64, np.float32), "scale"),
    ]
    inputs = [helper.make_tensor_value_info("x", size, [8, 64])]
    outputs = [
        helper.make_tensor_value_info("y", size, [8, 64]),
        helper.make_tensor_value_info("statistics", size, [8, 1]),
    ]
    graph = helper.make_graph(nodes, "normalised", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_what_is_printed_says_what_was_run(remat, mlp):
    estimated = remat("profile", "m.onnx", "--estimate", "cpu").out
    assert "nothing was run" in estimated
    assert "kinds of op" not in estimated
    measured = remat("profile", "m.onnx", *QUICK).out
    scales = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    found = re.findall(r"(?:graph takes|are scaled to) ([\d.]+?)([mun]?s)\b", measured)
    whole, scaled = (float(number) * scales[unit] for number, unit in found)
    assert scaled == pytest.approx(whole, rel=0.01)


def test_pinned_entries_stay(remat, mlp):
    remat("profile", "m.onnx", "--estimate", "cpu")
    path = mlp.with_name("m.costs.yaml")
    name = next(iter(load(path).ops))
    lines = [
        f"  {name}: {{ns: 77, pinned: true}}" if f"  {name}:" in line else line
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines))
    remat("profile", "m.onnx", *QUICK)
    assert load(path).table()[name] == (77, 0)
    assert load(path).ops[name].pinned


def test_a_pinned_file_with_nonsense_is_refused_and_kept(remat, mlp):
    path = mlp.with_name("m.costs.yaml")
    remat("profile", "m.onnx", "--estimate", "cpu")
    broken = path.read_text().replace("ns: ", "ns: -", 1)
    path.write_text(broken)
    ran = remat("profile", "m.onnx", "--estimate", "cpu")
    assert ran.code == 3
    assert "negative" in ran.err
    assert path.read_text() == broken


@pytest.mark.parametrize("device", ["v100", "a100", "h100", "h200", "cpu", "flops"])
def test_estimates_need_no_kernel(remat, mlp, monkeypatch, device):
    monkeypatch.setattr("profiles.bench.OpBench._start", None)
    assert remat("profile", "m.onnx", "--estimate", device).code == 0
    costs = load(mlp.with_name("m.costs.yaml"))
    assert costs.total > 0
    assert {cost.how for cost in costs.ops.values()} == {"estimated", "view"}
    assert costs.unit == ("flops" if device == "flops" else "ns")


def test_training_ops_are_estimated_and_marked(remat, mlp, data):
    shutil.copy(data / "ort_mlp.onnx", mlp)
    ran = remat("profile", "m.onnx", *QUICK)
    assert ran.code == 0
    assert "ReluGrad" in ran.err
    costs = load(mlp.with_name("m.costs.yaml"))
    marked = {op.op_type for op in ingest(mlp).ops if costs.ops[op.name].how == "estimated"}
    assert marked == {"SoftmaxCrossEntropyLossGrad", "ReluGrad", "InPlaceAccumulatorV2"}
    assert all(cost.note for cost in costs.ops.values() if cost.how == "estimated")
    strict = remat("profile", "m.onnx", "--strict", *QUICK)
    assert strict.code == 3
    assert "ReluGrad" in strict.err


def test_compare_prints_prediction_beside_measurement(remat, mlp):
    shown = remat("profile", "m.onnx", "--compare", "--json", *QUICK).object["compare"]
    assert shown["predicted"] > 0
    assert shown["measured"] > 0
    assert "MatMul" in shown["classes"]
    assert len(shown["worst"]) == 10
    assert "most off" in remat("profile", "m.onnx", "--compare", *QUICK).out


def test_dry_run_only_says(remat, mlp):
    ran = remat("profile", "m.onnx", "--dry-run", *QUICK)
    assert ran.code == 0
    assert "kinds" in ran.out
    assert not mlp.with_name("m.costs.yaml").exists()


@pytest.mark.slow
def test_batches_are_fitted(remat, mlp):
    size = TensorProto.FLOAT
    product = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    inputs = [helper.make_tensor_value_info("x", size, ["n", 64]), helper.make_tensor_value_info("w", size, [64, 32])]
    graph = helper.make_graph([product], "g", inputs, [helper.make_tensor_value_info("y", size, ["n", 32])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), mlp)
    assert remat("profile", "m.onnx", "--batch", "1,8,4", "--estimate", "flops").code == 0
    costs = load(mlp.with_name("m.costs.yaml"))
    assert costs.dims == {"n": 8}
    assert costs.for_dims({"n": 100}).table() == {"product": (2 * 100 * 64 * 32, 0)}
    measured = remat("profile", "m.onnx", "--batch", "1,8", *QUICK)
    assert measured.code == 0
    assert set(load(mlp.with_name("m.costs.yaml")).ops["product"].fit.points) == {1, 8}


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("m.onnx", "--estimate", "v900"), 2, "v100"),
        (("m.onnx", "--batch", "1,zero"), 2, "1,8,32"),
        (("m.onnx", "--batch", "1,8"), 2, "fixed"),
        (("m.onnx", "--batch-dim", "n"), 2, "--batch"),
        (("m.onnx", "--dim", "n=4"), 2, "n"),
        (("none.onnx",), 3, "none.onnx"),
        (("m.onnx", "--estimate", "cpu", "-o", "no/such/m.yaml"), 3, "no/such"),
    ],
)
def test_what_cannot_be_meant_is_refused(remat, mlp, arguments, code, words):
    ran = remat("profile", *arguments)
    assert ran.code == code
    assert words in ran.err
    assert "Traceback" not in ran.err


def test_cuda_asked_for_in_vain_says_what_is_missing(remat, mlp, monkeypatch):
    monkeypatch.setattr("profiles.cuda.loads", lambda library: False)  # also where CUDA could be used
    ran = remat("profile", "m.onnx", "--device", "cuda")
    assert ran.code == 2
    assert "driver" in ran.err
    assert "pip install" in ran.err


def test_when_time_is_up_what_is_missing_is_estimated(remat, mlp, monkeypatch):
    monkeypatch.setattr(OpBench, "_start", lambda *_: pytest.fail("a process was started after the end"))
    ran = remat("profile", "m.onnx", "--device", "cpu", "--time-limit", "0s")
    assert ran.code == 0
    assert "Time was up before" in ran.err
    costs = load(mlp.with_name("m.costs.yaml"))
    assert {cost.how for cost in costs.ops.values()} <= {"estimated", "view"}
    assert costs.whole.not_run == "time was up"
    assert remat("profile", "m.onnx", "--strict", "--device", "cpu", "--time-limit", "0s").code == 3
