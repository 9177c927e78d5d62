"""Graphs beyond plain ones do as foretold, as onnxruntime itself says: draws, quantized ops, later runs.

`examples/bench/run.py kinds` tries every kind.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
import pytest

import remat_cli as remat
from remat_cli.checking import trying
from remat_cli.checking.trying import Peaks
from remat_cli.errors import Infeasible, NoPlan
from remat_cli.formats import planfile
from remat_cli.model.graph import Graph
from remat_cli.model.quantities import parse_bytes
from remat_cli.model.sessions import DEFAULT
from remat_cli.notes.words import sentence
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search import request as requests
from remat_cli.planning.stock.target import StockTarget
from remat_cli.plans.planned import Planned, load_planned
from tests.remat_cli.kinds import model
from tests.sampling import few

pytestmark = pytest.mark.usefixtures("short_rounds")

NEAR = 0.03


def planned(path: Path, runtime: str, budget: str) -> Planned:
    costs = remat.profile(path, threads=1, time_limit=300)
    return remat.solve(path, budget=budget, costs=costs, runtime=runtime, work_limit=500_000, cache=False)


FORETOLD = ["quantized", "dropout_unseeded", "lstm_both_ways", "input_returned", "joined_words"]


@pytest.mark.parametrize("kind", few(FORETOLD, 1))
def test_the_peak_is_as_foretold(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model(kind).SerializeToString())
    plan = planned(path, "remat", "92%" if kind == "joined_words" else "85%")
    found = remat.verify(plan)
    measured, said = found.report.strict.after.first, found.promise.live
    assert abs(measured - said) <= NEAR * said
    assert found.draws == (kind == "dropout_unseeded")


@pytest.mark.slow
def test_what_no_session_can_hold_is_proved(data: Path) -> None:
    """Inputs, weights and outputs are held together when a run ends, so onnxruntime measures no less of any model."""
    path = data / "torch_cnn.onnx"
    costs = remat.profile(path, threads=1, time_limit=300)
    with pytest.raises(Infeasible, match=r"which is proved: .*outputs are held together") as caught:
        remat.solve(path, budget="17%", costs=costs, runtime="stock", work_limit=1_000_000, cache=False)
    said = re.search(r"at least [\d.]+% \(([\d.]+\w+)\)", str(caught.value))
    assert said is not None
    assert parse_bytes(said[1]) < min(costs.whole.default_peaks)


@pytest.mark.slow
def test_where_constants_are_folded_the_files_own_ops_are_planned(tmp_path: Path) -> None:
    """Optimizers keep what they make of weights beside them; what a plan of the file adds is in their way."""
    path = tmp_path / "rnn.onnx"
    path.write_bytes(model("rnn").SerializeToString())
    plan = planned(path, "stock", "92%")
    written = tmp_path / "rnn.plan.json"
    plan.save(written)
    assert planfile.read(written).graph == planfile.FILE
    assert load_planned(written).subject.nodes == plan.subject.nodes
    assert remat.verify(plan).ok


@pytest.mark.slow
def test_what_folding_holds_proves_nothing_of_plans_that_keep_from_it(tmp_path: Path) -> None:
    """The graph that default sessions run holds more at its end than the budget; the file's own ops hold less."""
    path = tmp_path / "rnn.onnx"
    path.write_bytes(model("rnn").SerializeToString())
    costs = remat.profile(path, threads=1, time_limit=300)
    subject = load_subject(path, costs, {}, DEFAULT)
    floors = [StockTarget().held_at_the_end(one) for one in (subject.own, subject)]
    assert floors[0] < floors[1]
    with pytest.raises(NoPlan):
        remat.solve(path, budget=sum(floors) // 2, costs=costs, runtime="stock", work_limit=1_000_000, cache=False)
    with pytest.raises(Infeasible):
        remat.solve(path, budget=floors[0] - 1, costs=costs, runtime="stock", work_limit=1_000_000, cache=False)


@pytest.mark.slow
def test_what_does_not_run_in_time_is_no_plan(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data / "torch_cnn.onnx"
    costs = remat.profile(path, threads=1, time_limit=300)
    monkeypatch.setattr(requests, "peaks", lambda *_: None)
    with pytest.raises(NoPlan, match="did not run in the time"):
        remat.solve(path, budget="80%", costs=costs, runtime="stock", work_limit=1_000_000, cache=False)


@pytest.mark.slow
def test_what_is_only_somewhere_else_than_foretold_is_named_and_tried(tmp_path: Path) -> None:
    """Casts that onnxruntime puts around ops of half precision do no harm at the model's peak, but do at a plan's."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model("half_chain").SerializeToString())
    plan = planned(path, "remat", "80%")
    assert any("where a plan has its peak" in sentence(note) for note in plan.subject.notes)
    found = remat.verify(plan)
    assert found.report.strict.after.first == found.promise.live <= plan.budget


@pytest.mark.slow
def test_later_runs_of_a_default_session_keep_to_the_budget(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[bytes]()

    def peaks(graph: Graph, model: onnx.ModelProto, *rest: Any) -> Peaks | None:
        made.append(model.SerializeToString())
        return trying.peaks(graph, model, *rest)

    monkeypatch.setattr(requests, "peaks", peaks)
    plan = planned(data / "torch_cnn.onnx", "stock", "80%")
    found = remat.verify(plan)
    seen = found.report.default.after
    assert (seen.first, seen.second) == (found.promise.live, found.promise.later)
    assert max(seen.first, seen.second) <= plan.budget < max(plan.subject.behaviour.peaks or (0,))
    assert 0 < len(made) == len(set(made))
