"""`remat emit` and `remat verify` from end to end: onnxruntime is the witness."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from remat_cli.formats import planfile
from remat_cli.plans.points import Point
from remat_cli.runtime.session import session_of
from remat_cli.saying.showing import shown
from solvers.problem import Status
from tests.cli.running import Command

PLANS = list[bytes]()


@pytest.fixture
def unet(data: Path, tmp_path: Path, remat: Command) -> Path:
    """A model with workspace and recomputation, and its plan, which is searched for once."""
    model, plan = tmp_path / "unet.onnx", tmp_path / "unet.plan.json"
    shutil.copy(data / "torch_unet_convt.onnx", model)
    if not PLANS:
        ran = remat("solve", model, "--budget", "85%", "--work-limit", "300k", "-q", "-o", plan)
        assert ran.code == 0, ran.err
        PLANS.append(plan.read_bytes())
    plan.write_bytes(PLANS[0])
    return plan


def _rewrite(path: Path, change: Any) -> None:
    model = onnx.load(path)
    change(model)
    onnx.save(model, path)


@pytest.mark.slow
def test_a_plan_is_kept(unet: Path, remat: Command) -> None:
    ran = remat("emit", unet, "--json")
    assert ran.code == 0, ran.err
    emitted = ran.object
    assert emitted["clones"] > 0
    onnx.checker.check_model(emitted["model"], full_check=True)
    first = Path(emitted["model"]).read_bytes()
    assert remat("emit", unet, "-q").out == ""
    assert Path(emitted["model"]).read_bytes() == first
    before, after = onnx.load(unet.parent / "unet.onnx"), onnx.load(emitted["model"])
    assert [x.name for x in before.graph.input] == [x.name for x in after.graph.input]
    assert [x.name for x in before.graph.output] == [x.name for x in after.graph.output]
    assert before.opset_import == after.opset_import
    assert {x.name for x in before.graph.initializer} <= {x.name for x in after.graph.initializer}
    ran = remat("verify", unet, "--json", "-o", unet.parent / "report.json")
    assert ran.code == 0, ran.err
    found = ran.object
    assert found["strict"]["differs"] == found["process"]["differs"] == []
    assert found["strict"]["after"]["first"] == found["predicted"]["strict"] < found["strict"]["before"]["first"]
    assert (unet.parent / "report.json").is_file()


@pytest.mark.slow
def test_times_stand_beside_what_was_foretold(unet: Path, remat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remat_cli.commands.verify_answer.TIMING_SECONDS", 0.2)
    emitted = remat("emit", unet, "--json").object
    timed = remat("verify", unet, "--time", "--json").object["timed"]
    assert 0 < timed["again"]["ops"] <= emitted["clones"]  # views take no time
    assert min(timed["again"].values()) > 0
    assert 0 <= timed["waited"] <= 1
    assert min(timed["before"], timed["after"], timed["probe"]) > 0


def test_what_emit_adds_is_in_every_overhead(unet: Path) -> None:
    plan = planfile.read(unet)
    dearer = replace(plan, promises=replace(plan.promises, time=2 * plan.baseline_cost))
    point = Point(budget=plan.budget, method=plan.method, status=Status.FEASIBLE, plan=dearer)
    assert point.overhead == dearer.overhead == 1
    planfile.write(dearer, unet)
    assert shown(unet).overhead == 1


@pytest.mark.slow
def test_a_plan_for_default_options_is_kept_there(unet: Path, remat: Command) -> None:
    model, plan = unet.parent / "unet.onnx", unet.parent / "default.plan.json"
    asked = "--runtime", "stock", "--budget", "76%", "--work-limit", "10M"
    ran = remat("solve", model, *asked, "-q", "-o", plan)
    assert ran.code == 0, ran.err
    lean = remat("emit", unet, "--json", "-o", unet.parent / "lean.onnx").object
    robust = remat("emit", plan, "--json").object
    assert (lean["guards"], lean["peak"]["default"]) == (0, None)
    assert lean["anchors"] < robust["anchors"]
    assert robust["guards"] > 0
    assert robust["clones"] > 0
    assert lean["baseline_time"] < lean["time"] < robust["time"]
    ran = remat("verify", plan)
    assert ran.code == 0, ran.err
    assert "strict session, not promised: same bytes" in ran.out
    found = remat("verify", plan, "--json").object
    assert found["default"]["differs"] == []
    assert found["default"]["after"]["first"] < found["default"]["before"]["first"]


@pytest.mark.slow
def test_a_model_that_fits_is_left_as_it_is(data: Path, tmp_path: Path, remat: Command) -> None:
    shutil.copy(data / "torch_cnn.onnx", tmp_path / "cnn.onnx")
    ran = remat("solve", tmp_path / "cnn.onnx", "--budget", "4MB", "-o", tmp_path / "cnn.plan.json")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("fits as it is, 2.561MB of 4MB; the session itself holds about ")
    emitted = remat("emit", tmp_path / "cnn.plan.json", "--json").object
    assert Path(emitted["model"]).read_bytes() == (tmp_path / "cnn.onnx").read_bytes()
    solved = remat(
        "solve", tmp_path / "cnn.onnx", "--budget", "100%", "--json", "-o", tmp_path / "cnn.plan.json"
    ).object
    assert (solved["recomputed"], solved["overhead"], solved["status"]) == (0, 0.0, "optimal")
    ran = remat("verify", tmp_path / "cnn.plan.json", "--json")
    assert ran.code == 0, ran.err
    assert ran.object["strict"]["after"] == ran.object["strict"]["before"]
    assert ran.object["strict"]["after"]["first"] == solved["live"]


@pytest.mark.slow
def test_the_other_session_is_no_reason_to_fail(unet: Path, remat: Command) -> None:
    """What default options make of a model for the strict session is said, and no more."""
    ran = remat("verify", unet)
    assert ran.code == 0, ran.err
    assert "default session, not promised: " in ran.out


@pytest.mark.slow
def test_verify_runs_with_the_threads_that_the_costs_are_for(
    data: Path, tmp_path: Path, remat: Command, short_rounds: None
) -> None:
    """Convolutions work in memory of each thread's own: with another number the peak would be another."""
    shutil.copy(data / "torch_cnn.onnx", tmp_path / "cnn.onnx")
    options = ("--device", "cpu", "--threads", "1", "--time-limit", "10m", "--no-cache", "--no-whole", "-q")
    assert remat("profile", tmp_path / "cnn.onnx", *options).code == 0
    assert (
        remat(
            "solve",
            tmp_path / "cnn.onnx",
            "--budget",
            "90%",
            "--work-limit",
            "1M",
            "-q",
            "-o",
            tmp_path / "cnn.plan.json",
        ).code
        == 0
    )
    ran = remat("verify", tmp_path / "cnn.plan.json", "--json")
    assert ran.code == 0, ran.err
    assert ran.object["threads"] == 1
    assert ran.object["strict"]["after"]["first"] == ran.object["predicted"]["strict"]


def test_the_strict_peak_is_the_predicted_one(data: Path, tmp_path: Path, remat: Command) -> None:
    """A network without workspace, so that estimated costs are enough: to the byte."""
    model = tmp_path / "gpt2.onnx"
    shutil.copy(data / "torch_gpt2_eager.onnx", model)
    assert (
        remat(
            "solve", model, "--budget", "100%", "--method", "checkpoint-all", "-q", "-o", tmp_path / "gpt2.plan.json"
        ).code
        == 0
    )
    plan = tmp_path / "gpt2.plan.json"
    found = remat("verify", plan, "--json", "--seed", 3).object
    assert found["strict"]["after"]["first"] == found["predicted"]["strict"]
    assert found["predicted"]["default"] is None
    assert not found["process"]["stray"]
    assert 0 < found["process"]["after"] - found["predicted"]["process"] < 10_000_000  # the runtime's own


def test_a_tampered_model_is_found_out(unet: Path, remat: Command) -> None:
    path = Path(remat("emit", unet, "--json").object["model"])

    def tamper(model: onnx.ModelProto) -> None:
        weight = next(t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 0)
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) + np.float32(1), weight.name))
        scale = next(node for node in model.graph.node if node.op_type == "Relu")
        scale.op_type = "Sigmoid"

    _rewrite(path, tamper)
    ran = remat("verify", unet)
    assert ran.code == 6
    assert "is not the same" in ran.err
    assert "elements differ, by" in ran.err


@pytest.mark.slow
def test_how_closely_to_look(data: Path, tmp_path: Path, remat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tolerances, another level of the default session, and both times, on a model that was tampered with a little."""
    shutil.copy(data / "torch_cnn.onnx", tmp_path / "m.onnx")
    ran = remat(
        "solve",
        tmp_path / "m.onnx",
        "--budget",
        "85%",
        "--method",
        "evict",
        "--work-limit",
        "10k",
        "-q",
        "-o",
        tmp_path / "m.plan.json",
    )
    assert ran.code == 0, ran.err
    plan, model = tmp_path / "m.plan.json", tmp_path / "m.remat.onnx"
    assert remat("emit", plan, "-q").code == 0

    def nudge(found: onnx.ModelProto) -> None:
        for tensor in found.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 1.0001, tensor.name))

    _rewrite(model, nudge)
    ran = remat("verify", plan)
    assert ran.code == 6
    assert len(ran.err) < 1500
    monkeypatch.setattr("remat_cli.commands.verify_answer.TIMING_SECONDS", 0.2)
    ran = remat("verify", plan, "--atol", "0.1", "--rtol", "0.1", "--level", "basic", "--time")
    assert ran.code == 0, ran.err
    assert "measured in turns" in ran.out


@pytest.mark.slow
def test_what_is_not_the_plans_is_refused(unet: Path, remat: Command) -> None:
    path = Path(remat("emit", unet, "--json").object["model"])
    _rewrite(path, lambda model: model.metadata_props.pop())
    _rewrite(path, lambda model: model.ClearField("metadata_props"))
    ran = remat("verify", unet, "--model", path)
    assert ran.code == 3
    assert "run 'remat emit" in ran.err
    before = path.read_bytes()
    ran = remat("verify", unet)  # a model of another plan stays where it is
    assert ran.code == 0, ran.err
    assert "was not made from this plan" in ran.out
    assert path.read_bytes() == before
    _rewrite(
        unet.parent / "unet.onnx",
        lambda model: model.graph.node[0].output.reverse() or setattr(model, "doc_string", "x"),
    )
    ran = remat("emit", unet)
    assert ran.code == 3
    assert "has changed" in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_models_that_no_kernel_runs_are_emitted_all_the_same(data: Path, tmp_path: Path, remat: Command) -> None:
    model = tmp_path / "m.onnx"
    shutil.copy(data / "ort_mlp.onnx", model)
    assert (
        remat(
            "solve", model, "--budget", "100%", "--method", "checkpoint-all", "-q", "-o", tmp_path / "m.plan.json"
        ).code
        == 0
    )
    assert remat("emit", tmp_path / "m.plan.json", "-q").code == 0
    ran = remat("verify", tmp_path / "m.plan.json")
    assert ran.code == 3
    assert "no kernel for op" in ran.err


@pytest.mark.slow
def test_external_data_goes_along(data: Path, tmp_path: Path, remat: Command) -> None:
    """Written elsewhere, the model has its tensors; and a strict session runs it."""
    model = tmp_path / "in" / "m.onnx"
    model.parent.mkdir()
    proto = onnx.load(data / "torch_cnn.onnx")
    onnx.save(proto, model, save_as_external_data=True, location="m.data", size_threshold=1024)
    assert (
        remat(
            "solve",
            model,
            "--budget",
            "100%",
            "--method",
            "checkpoint-all",
            "-q",
            "-o",
            tmp_path / "in" / "m.plan.json",
        ).code
        == 0
    )
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "r.onnx"
    assert remat("emit", tmp_path / "in" / "m.plan.json", "-o", target, "-q").code == 0
    copied, own = tmp_path / "out" / "m.data", tmp_path / "in" / "m.data"
    assert copied.read_bytes() == own.read_bytes()
    assert not copied.samefile(own)  # onnx refuses both models of a file with two names
    weights = {tensor.name: tensor for tensor in onnx.load(data / "torch_cnn.onnx").graph.initializer}
    for usable in (model, target):
        onnx.checker.check_model(str(usable))
        found = {tensor.name: tensor for tensor in onnx.load(usable).graph.initializer}
        for name, tensor in weights.items():
            np.testing.assert_array_equal(numpy_helper.to_array(found[name]), numpy_helper.to_array(tensor))
    assert target.stat().st_size < 200_000
    assert session_of(str(target), target.parent).get_outputs()
    ran = remat("verify", tmp_path / "in" / "m.plan.json", "--model", target, "--json").object
    assert ran["strict"]["differs"] == []
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "m.data").write_bytes(b"something else")
    ran = remat("emit", tmp_path / "in" / "m.plan.json", "-o", tmp_path / "other" / "r.onnx")
    assert ran.code == 3
    assert "in the way" in ran.err


def test_feeds_of_ones_own(data: Path, tmp_path: Path, remat: Command) -> None:
    model = tmp_path / "m.onnx"
    shutil.copy(data / "torch_mlp.onnx", model)
    assert (
        remat(
            "solve", model, "--budget", "100%", "--method", "checkpoint-all", "-q", "-o", tmp_path / "m.plan.json"
        ).code
        == 0
    )
    np.savez(tmp_path / "f.npz", x0=np.zeros(3))
    ran = remat("verify", tmp_path / "m.plan.json", "--feeds", tmp_path / "f.npz")
    assert ran.code == 3
    assert "no array for input" in ran.err
    (tmp_path / "g.npz").write_bytes(b"not a zip")
    assert remat("verify", tmp_path / "m.plan.json", "--feeds", tmp_path / "g.npz").code == 3


@pytest.mark.slow
def test_a_plan_from_estimates_keeps_its_promise_too(remat: Command, data: Path) -> None:
    """What kernels hold while they run counts, measured or not; U-Net has convolutions large enough to tell."""
    assert remat("zoo", "unet", "--batch", 2, "--image", 32, "--width", 4, "-o", "u.onnx", "-q").code == 0
    assert remat("grad", "u.onnx", "-q").code == 0
    assert (
        remat("solve", "u.train.onnx", "--budget", "80%", "--method", "evict", "-q", "-o", "u.train.plan.json").code
        == 0
    )
    ran = remat("verify", "u.train.plan.json", "--json")
    assert ran.code == 0, ran.err
    assert (
        ran.object["strict"]["before"]["first"] == remat("show", "u.train.plan.json", "--json").object["baseline_peak"]
    )


def test_the_cpu_never_stands_in_for_cuda(remat: Command, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiles.cuda.loads", lambda library: False)  # also where CUDA could be used
    shutil.copy(data / "torch_mlp.onnx", "m.onnx")
    assert (
        remat("solve", "m.onnx", "--budget", "100%", "--method", "checkpoint-all", "-q", "-o", "m.plan.json").code == 0
    )
    ran = remat("verify", "m.plan.json", "--provider", "cuda")
    assert ran.code == 2
    assert "missing" in ran.err


@pytest.mark.parametrize(
    "limit, why",
    [
        ("--time-limit", "time was up before the original had run"),
        ("--timeout", "the original failed: it did not end within 0 s"),
    ],
)
def test_what_had_no_time_to_run_is_not_verified(unet: Path, remat: Command, limit: str, why: str) -> None:
    """No time at all was taken for all the time there is, or for a fault of the plan."""
    ran = remat("verify", unet, limit, "0s")
    assert ran.code == 5
    assert f"{why}; give more time" in ran.err
