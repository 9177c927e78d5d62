"""`shrink`: what is measured from outside, what is recommended, and what is left when it is ended early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import onnxruntime
import pytest

import remat_cli as remat
from remat_cli.actions.optimizing import fuse
from remat_cli.actions.session_writing import write_parts
from remat_cli.actions.shrinking import metering
from remat_cli.actions.shrinking.asked import ShrinkQuestion
from remat_cli.actions.shrinking.metering import WayTrials
from remat_cli.actions.shrinking.plans import unmeasured
from remat_cli.actions.shrinking.preparing import fused, prepare
from remat_cli.actions.shrinking.shrink import Shrinking
from remat_cli.actions.shrinking.ways import AS_IT_IS, LEAN, Outputs, RunWay, TriedWay, choose, compared
from remat_cli.checking.child import LEAN as LEAN_SESSION
from remat_cli.checking.child import UserProgram
from remat_cli.checking.metered import Failed, MeteredProcess
from remat_cli.runtime.optimized import layout_block
from solvers.clock import Clock, limited

MB = 1_000_000
NEW = RunWay("new", "a file", written=True)
FIRST = TriedWay(AS_IT_IS, peak=200 * MB, held=200 * MB, ns=1000)


def tower(batch: int | str = 1, opset: int = 18, dtype: int = 1) -> onnx.ModelProto:
    """Convolutions whose values are much larger than their weights."""
    random, made = np.random.default_rng(0), onnx.helper.make_node
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    weights = [
        onnx.numpy_helper.from_array((random.random((8, 8, 3, 3)) - 0.5).astype(kind), f"w{k}") for k in range(3)
    ]
    nodes = []
    for k in range(3):
        nodes.append(made("Conv", [f"x{k}" if k else "x", f"w{k}"], [f"c{k}"], pads=[1, 1, 1, 1]))
        nodes.append(made("Relu", [f"c{k}"], [f"x{k + 1}"]))
    nodes.append(made("ReduceMean", ["x3"], ["y"], axes=[2, 3], keepdims=0))
    x = onnx.helper.make_tensor_value_info("x", dtype, [batch, 8, 512, 512])
    y = onnx.helper.make_tensor_value_info("y", dtype, [batch, 8])
    graph = onnx.helper.make_graph(nodes, "tower", [x], [y], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(tower(opset=11), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def shrinking(model: Path, folder: Path, clock: Clock, **asked: object) -> Shrinking:
    folder.mkdir(exist_ok=True)
    question = ShrinkQuestion(**asked)  # type: ignore[arg-type]
    return Shrinking(model, model.with_name("m.small.onnx"), folder, question, clock)


def test_a_process_is_metered_from_outside(model: Path, tmp_path: Path) -> None:
    """What two values of a run take is in the figure; what the feeds take is not."""
    ready = prepare(model, ShrinkQuestion(), tmp_path)
    with MeteredProcess(UserProgram(model, LEAN_SESSION), ready.feeds, Clock(300)) as program:
        program.make()
        assert program.peak < 40 * MB
        program.run()
        value = 4 * 8 * 512 * 512
        assert 2 * value < program.peak < 8 * value
        program.keep(tmp_path / "out.npz")
    with np.load(ready.feeds) as feeds, np.load(tmp_path / "out.npz") as kept:
        right = onnxruntime.InferenceSession(str(model)).run(None, dict(feeds))
        assert [kept[name].tobytes() for name in kept.files] == [one.tobytes() for one in right]
    assert program.child.process.poll() is not None


def test_threads_that_spin_after_a_run_take_no_core_from_another_program(model: Path, tmp_path: Path) -> None:
    ready = prepare(model, ShrinkQuestion(), tmp_path)
    with MeteredProcess(UserProgram(model, LEAN_SESSION), ready.feeds, Clock(300)) as program:
        program.make()
        program.run()
        for _ in range(40):  # on a machine that is busy they spin for longer
            program.rest()
        threads = Path(f"/proc/{program.child.process.pid}/task").glob("*/status")
        assert not [text for text in (path.read_text() for path in threads) if "State:\tR" in text]


class Told:
    """A process whose runs take as long as was said; those of one kind of session before another's."""

    said: ClassVar[dict[str, list[int]]] = {}

    def __init__(self, program: UserProgram, feeds: Path, clock: Clock) -> None:
        self.runs = iter(self.said[program.session])
        self.times: list[int] = []
        self.peak = self.held = 0

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def make(self) -> None: ...

    def rest(self) -> None: ...

    def run(self) -> int:
        self.times.append(next(self.runs))
        return self.times[-1]

    def keep(self, path: Path) -> None:
        np.savez(path, np.zeros(1))


def test_other_work_that_meets_some_turns_changes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first runs are warm, as many are alone, and then there are turns: a burst meets four of them, and one run of
    the model as it is that nothing disturbs."""
    alone = [900] + metering.MOST_RUNS * [100]
    own = alone + [110, 330, 330, 330, 330] + 15 * [110]
    other = [900, 80, 300, 300, 300, 300] + 15 * [100]
    monkeypatch.setattr(metering, "MeteredProcess", Told)
    monkeypatch.setattr(Told, "said", {"first": alone, "second": own})
    trials = WayTrials(tmp_path / "feeds.npz", tmp_path, lambda: pytest.fail("the outputs are the same"))
    assert trials.tried(AS_IT_IS, UserProgram(tmp_path, "first"), Clock(300)).ns == 100
    Told.said["first"] = other
    assert trials.tried(NEW, UserProgram(tmp_path, "second"), Clock(300)).ns == 110


def test_a_program_that_cannot_run_says_why_and_one_that_is_late_is_ended(model: Path, tmp_path: Path) -> None:
    ready = prepare(model, ShrinkQuestion(), tmp_path)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(model.read_bytes()[:100])
    with (
        MeteredProcess(UserProgram(broken, LEAN_SESSION), ready.feeds, Clock(300)) as program,
        pytest.raises(Failed) as failed,
    ):
        program.make()
    assert not failed.value.late
    over = Clock(300, stopped=lambda: True)
    with pytest.raises(Failed) as failed, MeteredProcess(UserProgram(model, LEAN_SESSION), ready.feeds, over):
        pass
    assert failed.value.late


@pytest.mark.parametrize(
    ("lean", "new", "best"),
    [
        (TriedWay(LEAN, peak=150 * MB, ns=1050), TriedWay(NEW, peak=80 * MB, ns=1090), "new"),
        (TriedWay(LEAN, peak=150 * MB, ns=1050), TriedWay(NEW, peak=80 * MB, ns=1110), LEAN.name),  # too slow
        (TriedWay(LEAN, peak=150 * MB, ns=1050), TriedWay(NEW, peak=149 * MB, ns=1000), LEAN.name),  # no clear gain
        (
            TriedWay(LEAN, peak=150 * MB, ns=1500),
            TriedWay(NEW, peak=150 * MB, ns=1000),
            "new",
        ),  # the two options are too slow
        (TriedWay(LEAN, peak=150 * MB, ns=1500), TriedWay(NEW, failed="why"), AS_IT_IS.name),
        (TriedWay(LEAN, peak=199 * MB, ns=1000), TriedWay(NEW, peak=198 * MB, ns=1000), AS_IT_IS.name),
        (
            TriedWay(LEAN, peak=300 * MB, ns=900),
            TriedWay(NEW, peak=80 * MB, ns=900, outputs=Outputs(False, False)),
            "as it is",
        ),
    ],
)
def test_what_is_recommended_ran_in_time_with_outputs_that_are_near(lean: TriedWay, new: TriedWay, best: str) -> None:
    choice = choose((FIRST, lean, new), 0.1)
    assert choice.best.way.name == best
    assert choice.against is (lean if lean.peak < FIRST.peak else FIRST)


def test_outputs_are_the_same_near_or_other() -> None:
    one = np.array([1.0, -2.0, 4.0, np.nan], np.float32)
    assert compared([one], [one.copy()]).same
    moved = one + np.float32(1e-5) * np.array([1, 0, 0, 0], np.float32)
    near = compared([one], [moved])
    assert (near.same, near.near) == (False, True)
    assert near.off == pytest.approx(2.5e-6, rel=0.1)
    assert not compared([one], [one * np.float32(1.01)]).near
    assert not compared([np.array([1, 2])], [np.array([1, 3])]).near
    assert compared([one], []).off == np.inf


def test_sizes_come_from_the_feeds_and_one_message_asks_for_the_others(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(tower(batch="batch"), path)
    feeds = {"x": np.zeros((2, 8, 512, 512), np.float32)}
    assert prepare(path, ShrinkQuestion(feeds=feeds), tmp_path).graph.dims == {"batch": 2}
    with pytest.raises(remat.BadInput, match="--dim batch=N"):
        prepare(path, ShrinkQuestion(), tmp_path)
    with pytest.raises(remat.BadInput, match="there is no array for input 'x'"):
        prepare(path, ShrinkQuestion(feeds={"z": feeds["x"]}, dims={"batch": 1}), tmp_path)


@pytest.mark.slow
def test_plans_by_work_are_the_same_whatever_the_time(tmp_path: Path) -> None:
    """Each has its share of the work; what is left of the time then is for others."""
    small, held = tower(opset=11), []
    for dim in small.graph.input[0].type.tensor_type.shape.dim[2:]:
        dim.dim_value = 64
    onnx.save(small, tmp_path / "m.onnx")
    for seconds, name in ((3000, "first"), (2000, "again")):
        work = shrinking(tmp_path / "m.onnx", tmp_path / name, limited(seconds, 3_000), slower=100.0)
        work.run()
        assert not work.found.stopped
        held.append(work.held)
        assert work.clock.work.spent <= 2 * 3_000
    assert held[0] == held[1]
    assert len(held[0]) >= 2


def test_whoever_has_had_enough_gets_what_there_is_and_nothing_half_written(model: Path, tmp_path: Path) -> None:
    stop: list[bool] = []
    work = shrinking(model, tmp_path / "made", Clock(300, stopped=lambda: bool(stop)))
    work = replace(work, row=lambda _: stop.append(True))
    work.run()
    found = work.finish()
    assert found.stopped
    assert [one.way for one in found.tried if one.ran] == [AS_IT_IS]
    assert found.choice is not None
    assert found.choice.best.way == AS_IT_IS
    assert not list(tmp_path.glob("m.small*"))


def test_what_folding_would_make_larger_stays_as_it_is(tmp_path: Path) -> None:
    """Weights of 16 bits, cast where they are used, are not stored in 32."""
    half = tower(opset=11, dtype=onnx.TensorProto.FLOAT16)
    for tensor in half.graph.initializer:  # large enough not to be folded for their own sake
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.ones((64, 64, 3, 3), np.float16), tensor.name))
    half.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 64
    half.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 64

    def stored(model: onnx.ModelProto) -> int:
        return sum(len(onnx.numpy_helper.to_array(tensor).tobytes()) for tensor in model.graph.initializer)

    assert stored(fuse(half, tmp_path, "")) < 1.05 * stored(half)


def test_a_model_that_is_refused_is_measured_on_the_inputs_that_are_given(tmp_path: Path) -> None:
    """Its sizes depend on data in a way that no run shows: the two options are tried all the same."""
    made, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [made("SplitToSequence", ["x"], ["s"], axis=0), made("SequenceAt", ["s", "k"], ["y"])]
    inputs = [info("x", 1, [4, 8]), info("k", onnx.TensorProto.INT64, [])]
    graph = onnx.helper.make_graph(nodes, "sequence", inputs, [info("y", 1, None)])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8),
        tmp_path / "m.onnx",
    )
    feeds = {"x": np.ones((4, 8), np.float32), "k": np.array(2)}
    found = remat.shrink(tmp_path / "m.onnx", feeds=feeds, cache=False)
    assert [one.way for one in found.tried if one.ran] == [AS_IT_IS, LEAN]
    assert found.refused
    assert not found.files


@pytest.mark.slow
def test_sizes_that_depend_on_data_are_planned_as_the_feeds_make_them(tmp_path: Path) -> None:
    """The file that onnxruntime makes of the model says nothing of them."""
    made, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [made("Relu", ["x"], ["r"]), made("NonZero", ["r"], ["n"]), made("Neg", ["n"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "kept", [info("x", 1, [4])], [info("y", onnx.TensorProto.INT64, None)])
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), path)
    ready = prepare(path, ShrinkQuestion(feeds={"x": np.array([1, -1, 2, 3], np.float32)}), tmp_path)
    assert ready.graph is not None
    subject = unmeasured(fused(path, ready.graph, tmp_path, layouts=True), ready.feeds)
    assert subject.graph is not None
    assert subject.graph.values["y"].shape == (1, 3)


@pytest.mark.slow
def test_a_branch_that_is_not_taken_need_not_go_with_the_sizes(tmp_path: Path) -> None:
    """onnxruntime loads the model with free dimensions alone: with these it finds fault in the other branch."""
    made, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    stored = [onnx.numpy_helper.from_array(np.ones((size, 2), np.float32), f"w{size}") for size in (3, 5)]
    branches = [
        onnx.helper.make_graph([made("MatMul", ["x", f"w{size}"], [f"y{size}"])], "b", [], [info(f"y{size}", 1, None)])
        for size in (3, 5)
    ]
    nodes = [made("If", ["go"], ["y"], then_branch=branches[0], else_branch=branches[1]), made("Relu", ["y"], ["z"])]
    inputs = [info("x", 1, ["n", "m"]), info("go", onnx.TensorProto.BOOL, [])]
    graph = onnx.helper.make_graph(nodes, "either", inputs, [info("z", 1, None)], stored)
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), path)
    feeds = {"x": np.full((4, 3), 2, np.float32), "go": np.array(True)}
    found = remat.shrink(path, feeds=feeds, max_slower="10000%", time_limit="10m", cache=False)
    assert not found.refused
    assert found.tried[2].ran
    assert found.tried[2].outputs.near


def test_layouts_of_another_processor_are_refused(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that lie in other blocks would give other results, without a word."""
    plan = remat.solve(model, minimize="peak", work_limit=10, cache=False)
    recorded = plan.recorded
    assert recorded.placement is not None
    here = replace(recorded.placement, layout=layout_block())
    write_parts(replace(plan, recorded=replace(recorded, placement=here)), tmp_path)
    there = replace(here, layout=layout_block() + 8)
    with pytest.raises(remat.BadInput, match="another kind of processor"):
        write_parts(replace(plan, recorded=replace(recorded, placement=there)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["python", "c", "stock"])
def test_a_model_in_less_memory_with_the_same_outputs(model: Path, tmp_path: Path, target: str) -> None:
    """Any time is allowed here, since what is recommended must not depend on how busy this machine is."""
    heard: list[TriedWay] = []
    asked = {"max_slower": "10000%", "time_limit": "2m", "work_limit": 50_000, "cache": False}
    found = remat.shrink(model, target=target, **asked, report=heard.append)
    assert heard == found.tried
    assert [one.way.name for one in found.tried][:3] == [AS_IT_IS.name, LEAN.name, "whole ops, planned"]
    assert all(one.outputs.near for one in found.tried if one.ran)
    assert not list(tmp_path.glob(".remat*"))
    if target == "stock":
        return
    assert found.choice is not None
    assert found.choice.best.way.written
    assert found.files
    feeds = {"x": np.random.default_rng(1).random((1, 8, 512, 512), np.float32)}
    right = onnxruntime.InferenceSession(str(model)).run(None, feeds)[0]
    if target == "python":
        session = remat.session(found.files[-1])
        for _ in range(3):
            (made,) = session.run(None, feeds)
            np.testing.assert_allclose(made, right, rtol=1e-4)
        assert session.missed_in_all.requests == 0
    else:
        assert found.files[-1].read_text().startswith("remat-places 1")
