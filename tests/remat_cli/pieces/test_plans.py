"""Plans of graphs in pieces, on the whole road: solve, save, load, emit, verify on the real runtime."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import remat_cli as remat
from profiles.costfile import dump
from profiles.costs import OpCost
from profiles.survey import Ops
from remat_cli.actions.pieces_asked import Listed, pieces_named
from remat_cli.actions.piecing import in_pieces
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask
from remat_cli.model.quantities import Budget
from remat_cli.notes.words import sentences
from remat_cli.planning.loading import load_subject
from remat_cli.zoo.build import build
from solvers.clock import limited
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits
from tests.remat_cli.pieces.test_models import values_of

WORK = 60_000  # moves
GPT2 = {"layers": 1, "hidden": 32, "heads": 2, "seq": 33, "batch": 3, "vocabulary": 1501}
UNET = {"image": 96, "width": 8, "batch": 1}
SUMMED = {"x": [8, 64], "w": [64, 64]}


@pytest.fixture(autouse=True)
def short_leanest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leanest plan has work of its own, more than plans so small as these need."""
    monkeypatch.setattr("solvers.methods.auto.leanest.WALKING_MOVES", WORK)
    monkeypatch.setattr("solvers.methods.auto.leanest.DIGGING_STATES", WORK // 100)
    monkeypatch.setattr("solvers.methods.auto.leanest.CHEAPENING_GOES", 1)


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training step of a language model, its state held once, whose loss sets the least peak."""
    path = tmp_path_factory.mktemp("step") / "gpt2.train.onnx"
    onnx.save(remat.grad(build("gpt2", **GPT2), optimizer="adamw"), path)
    return path


@pytest.fixture(scope="module")
def unet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unet") / "unet.onnx"
    onnx.save(build("unet", training=False, **UNET), path)
    return path


def floor(path: Path) -> int:
    """What nothing of whole ops gets below."""
    return peak_bound(load_subject(path, None, {}).problem).peak


def test_a_refusal_says_what_pieces_would_do(step: Path) -> None:
    with pytest.raises(remat.Infeasible, match=r"in pieces the least is about .*: --pieces auto"):
        remat.solve(step, budget=int(0.95 * floor(step)), work_limit=10 * WORK, cache=False)


@pytest.fixture(scope="module")
def below(step: Path) -> remat.Planned:
    """A plan for less than what any plan of whole ops needs."""
    return remat.solve(step, budget=int(0.92 * floor(step)), pieces="auto", work_limit=WORK, cache=False)


@pytest.mark.slow
def test_a_budget_below_the_floor_is_kept_in_pieces(below: remat.Planned, step: Path, tmp_path: Path) -> None:
    assert below.recorded.pieces
    assert below.recorded.in_place
    assert any("With whole ops every plan needs at least" in note for note in below.notes)
    below.save(tmp_path / "m.plan.json")
    again = remat.load_plan(tmp_path / "m.plan.json")
    assert again.recorded.pieces == below.recorded.pieces
    assert again.subject.nodes == below.subject.nodes
    assert remat.emit(again).SerializeToString() is not None
    found = remat.verify(again)
    assert found.ok
    assert found.report.strict.after.first is not None
    assert found.report.strict.after.first <= below.budget
    assert found.near.scale > 0
    assert found.report.exactness
    assert all(one.as_good for one in found.report.exactness)


@pytest.mark.slow
def test_what_is_further_from_float64_is_a_fault(below: remat.Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right that is the original's own answer, and so no error at all, makes any difference of bits a fault."""
    monkeypatch.setattr("remat_cli.checking.exactness.FACTOR_MOST", 0.0)
    monkeypatch.setattr("remat_cli.checking.exactness.ROUNDING", 0.0)
    with pytest.raises(remat.Mismatch, match="times as far off"):
        remat.verify(below)


def test_the_baseline_is_the_model_as_it_was_given(below: remat.Planned, step: Path) -> None:
    whole = load_subject(step, None, {})
    assert below.recorded.baseline_peak == whole.before().peak
    assert below.recorded.baseline_cost == whole.before().cost
    assert below.cost >= sum(node.cost for node in below.subject.problem.nodes)


def test_a_record_that_makes_another_graph_is_refused(below: remat.Planned, tmp_path: Path) -> None:
    path = tmp_path / "m.plan.json"
    below.save(path)
    said = json.loads(path.read_text())
    said["pieces"]["regions"][-1]["ways"].popitem()
    path.write_text(json.dumps(said))
    with pytest.raises(remat.BadInput, match="other pieces"):
        remat.load_plan(path)
    said["pieces"]["regions"][-1]["ways"] = {"nowhere": "axis 0"}
    path.write_text(json.dumps(said))
    with pytest.raises(remat.BadInput, match="no op 'nowhere'"):
        remat.load_plan(path)
    said["pieces"]["regions"] = [{"pieces": "many", "ways": {}}]
    path.write_text(json.dumps(said))
    with pytest.raises(remat.BadInput, match=r"'pieces.regions\[0\].pieces'"):
        remat.load_plan(path)


@pytest.mark.slow
def test_the_least_memory_of_a_forward_model_is_less_in_pieces(unet: Path) -> None:
    whole = remat.solve(unet, minimize="peak", work_limit=WORK, cache=False)
    pieces = remat.solve(unet, minimize="peak", pieces="auto", work_limit=WORK, cache=False)
    assert pieces.peak < 0.85 * whole.peak
    assert remat.verify(pieces).ok


@pytest.mark.slow
def test_whole_ops_are_handed_over_where_they_do_as_well(unet: Path, below: remat.Planned) -> None:
    """The answer with whole ops that goes with a question is the answer, unless pieces do better."""
    subject, question = load_subject(unet, None, {}), Question(minimize="peak")
    whole = ask(subject, question, Limits(limited(moves=WORK)))
    cut = in_pieces(subject, pieces_named("auto"), question, Limits(limited(moves=WORK)))
    assert cut.subject.pieces
    assert cut.whole is not None
    assert cut.whole.budget < 1.1 * whole.budget
    better = replace(cut.asked(question, pieces_named("auto")), whole=replace(whole, budget=1))
    found = ask(cut.subject, better, Limits(limited(moves=WORK)))
    assert found.subject.pieces is None
    assert any("whole ops" in note for note in sentences(found.notes))
    worse = replace(better, whole=replace(whole, budget=10 * whole.budget))
    assert ask(cut.subject, worse, Limits(limited(moves=WORK))).subject.pieces == cut.subject.pieces


def test_a_walk_is_what_to_begin_with_where_no_plan_was_found(unet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in large graphs, where short searches find none."""
    monkeypatch.setattr("remat_cli.actions.piece_choice.TRIES", 0)  # there is no time for any
    subject, budget = load_subject(unet, None, {}), int(0.93 * floor(unet))
    question = Question(budget=Budget(Fraction(budget)))
    cut = in_pieces(subject, pieces_named("auto"), question, Limits(limited(moves=WORK)))
    assert cut.subject.pieces
    assert cut.plans
    assert all(plan.peak <= budget for plan in cut.plans)


@pytest.mark.slow
def test_plans_of_many_ops_leave_room_for_their_places(unet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that fills the budget to the last byte was found, and then no places for it."""
    subject, budget = load_subject(unet, None, {}), int(0.93 * floor(unet))
    question = Question(budget=Budget(Fraction(budget)))
    monkeypatch.setattr("remat_cli.actions.piece_choice.MANY_OPS", 10)
    cut = in_pieces(subject, pieces_named("auto"), question, Limits(limited(moves=WORK)))
    assert cut.plans
    assert all(plan.peak <= 0.95 * budget for plan in cut.plans)


@pytest.mark.slow
def test_a_curve_begins_lower_in_pieces(step: Path) -> None:
    whole, pieces = (
        remat.sweep(step, budgets="/2", pieces=how, work_limit=WORK, cache=False) for how in ("off", "auto")
    )
    assert pieces.least_peak is not None
    assert whole.least_peak is not None
    assert pieces.least_peak < floor(step) < whole.least_peak


@pytest.mark.slow
def test_a_larger_batch_fits_in_pieces() -> None:
    """No batch is proved not to fit by what whole ops need."""
    model = build("gpt2", free_batch=True, **{name: size for name, size in GPT2.items() if name != "batch"})
    sizes = [
        remat.max_batch(
            model,
            budget="2.4MB",
            max_overhead=1.0,
            pieces=how,
            baselines=(),
            optimizer="adamw",
            estimate="v100",
            work_limit=WORK // 10,
            cache=False,
        )
        for how in ("off", "auto")
    ]
    assert sizes[1].size > sizes[0].size
    assert sizes[1].plan.recorded.pieces
    assert sizes[1].next.verdict == "unknown"


@pytest.mark.slow
def test_pieces_cost_what_they_take_where_ops_were_measured(
    unet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is measured of a piece, as much slower as its op is in the graph, is in the plan and comes back with it."""
    paper = remat.profile(unet, estimate="v100")
    ops = {name: replace(cost, how="measured", alone=max(1, cost.ns // 2)) for name, cost in paper.ops.items()}
    costs = tmp_path / "unet.costs.yaml"
    costs.write_text(dump(replace(paper, ops=ops, model=str(unet))))

    def timed(ops: Ops) -> dict[str, OpCost]:
        return {name: OpCost(700 if name.endswith("piece0") else 900, 64, "measured") for name in ops.signatures}

    monkeypatch.setattr("remat_cli.actions.piecing.timed_here", lambda *_: timed)
    plan = remat.solve(unet, minimize="peak", pieces="auto", costs=costs, work_limit=WORK, cache=False)
    assert plan.recorded.pieces
    origin = {name: name.partition("/piece")[0] for name in plan.subject.nodes if "/piece" in name}
    cost = {name: node.cost for name, node in zip(plan.subject.nodes, plan.subject.problem.nodes, strict=True)}
    checked = [name for name, whole in origin.items() if whole in ops and ops[whole].ns > 100]
    assert checked
    for name in checked:
        whole = ops[origin[name]]
        assert whole.alone
        assert cost[name] == round((700 if name.endswith("piece0") else 900) * whole.ns / whole.alone)
    plan.save(tmp_path / "m.plan.json")
    assert remat.load_plan(tmp_path / "m.plan.json").subject.problem == plan.subject.problem
    said = json.loads((tmp_path / "m.plan.json").read_text())
    said["pieces"]["costs"][checked[0]] = [-1, 0]
    (tmp_path / "m.plan.json").write_text(json.dumps(said))
    with pytest.raises(remat.BadInput, match=r"'pieces\.costs"):
        remat.load_plan(tmp_path / "m.plan.json")


@pytest.mark.slow
def test_exact_pieces_give_the_same_bytes(unet: Path) -> None:
    whole = load_subject(unet, None, {}).before().peak
    plan = remat.solve(unet, minimize="peak", pieces="exact", work_limit=WORK, cache=False)
    assert plan.recorded.pieces
    assert plan.recorded.pieces.exact
    assert plan.peak < whole
    found = remat.verify(plan)
    assert found.ok
    assert found.near.scale == 0


def test_a_model_that_fits_stays_whole(unet: Path) -> None:
    plan = remat.solve(unet, budget="100%", pieces="auto", work_limit=WORK, cache=False)
    assert plan.recorded.pieces is None
    assert plan.overhead == 0


@pytest.mark.slow
def test_values_by_name_and_the_largest_value(unet: Path) -> None:
    subject = load_subject(unet, None, {})
    assert subject.graph is not None
    sizes = {name: subject.graph.values[name].bytes for name in subject.values}
    widest = max(sizes, key=lambda name: sizes[name])
    listed = remat.solve(unet, minimize="peak", pieces=f"{widest}@2=3", work_limit=WORK, cache=False)
    assert listed.recorded.pieces
    assert listed.recorded.pieces.regions[0].pieces == 3
    narrow = remat.solve(unet, minimize="peak", largest_value=sizes[widest] // 2, work_limit=WORK, cache=False)
    assert max(narrow.subject.problem.sizes) <= sizes[widest] // 2
    session = remat.session(narrow)
    feeds = values_of(onnx.load(unet))
    found = session.run(None, feeds)
    right = remat.session(remat.solve(unet, budget="100%", cache=False)).run(None, feeds)
    for one, other in zip(found, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_listed_pieces_that_hold_more_than_the_model_are_planned() -> None:
    """A sum in pieces is held twice, which the whole op does not need."""
    x, w = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size) for name, size in SUMMED.items())
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    nodes.append(helper.make_node("Gemm", ["y", "y"], ["w"], name="gemm", transA=1))
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [w]), opset_imports=opsets, ir_version=10)
    whole = remat.solve(model, minimize="peak", work_limit=1000, cache=False)
    plan = remat.solve(model, minimize="peak", pieces="y@0=2", work_limit=1000, cache=False)
    assert plan.recorded.pieces
    assert plan.budget > whole.budget
    assert remat.verify(plan).ok


@pytest.mark.slow
def test_a_sum_of_nothing_but_rounding_may_be_rounded_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the gradient of a bias before a BatchNormalization, in a model that is too large for a run in float64."""
    monkeypatch.setattr("remat_cli.actions.verifying.run_in_float64", lambda *_: None)
    x, sums = (helper.make_tensor_value_info(name, 1, size) for name, size in (("x", [512, 64]), ("sums", [64])))
    rows = numpy_helper.from_array(np.array([0]), "rows")
    nodes = [
        helper.make_node("ReduceMean", ["x", "rows"], ["mean"], name="mean"),
        helper.make_node("Sub", ["x", "mean"], ["off"], name="off"),
        helper.make_node("ReduceSum", ["off", "rows"], ["sums"], name="sums", keepdims=0),
    ]
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [sums], [rows]), opset_imports=opsets, ir_version=10)
    plan = remat.solve(model, minimize="peak", pieces="off=4", work_limit=1000, cache=False)
    assert plan.recorded.pieces
    found = remat.verify(plan)
    assert found.ok
    assert found.report.process is not None
    assert [one.output for one in found.report.process.varies] == ["sums"]


def test_what_cannot_be_asked_is_said(unet: Path, data: Path) -> None:
    with pytest.raises(remat.Usage, match="auto, exact, off"):
        remat.solve(unet, minimize="peak", pieces="some")
    with pytest.raises(remat.BadInput, match="no value 'nowhere'"):
        remat.solve(unet, minimize="peak", pieces="nowhere=2")
    with pytest.raises(remat.Usage, match="--runtime remat alone"):
        remat.solve(unet, minimize="peak", pieces="auto", runtime="stock")
    with pytest.raises(remat.Usage, match="bare problem"):
        remat.solve(data / "networks" / "unet.problem.json", minimize="peak", pieces="auto")


def test_a_list_names_values_and_axes() -> None:
    assert pieces_named("a=2,b/c@1=16").listed == (Listed("a", 2), Listed("b/c", 16, 1))
    assert pieces_named("x@y=3").listed == (Listed("x@y", 3),)
    assert not pieces_named("off").wanted
    assert replace(pieces_named(None), largest=5).wanted
