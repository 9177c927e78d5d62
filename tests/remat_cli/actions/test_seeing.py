"""Sizes that depend on data are seen in a run, named, planned with, and no claim of the rewritten model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import remat_cli as remat
from profiles import bench
from remat_cli.actions import observing
from remat_cli.ingest import ingest
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.notes.kinds import PlanNote
from remat_cli.notes.words import sentence
from tests.remat_cli.kinds import model
from tests.remat_cli.kinds.by_data import endless
from tests.remat_cli.kinds.chain import Chain
from tests.remat_cli.strict_session import session
from tests.sampling import few

pytestmark = pytest.mark.usefixtures("short_rounds")


def saved(kind: str, folder: Path) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(model(kind).SerializeToString())
    return path


@pytest.mark.parametrize("kind, values", few([("kept_rows", 1), ("distinct", 2)], 1, several=True))
def test_sizes_that_data_makes_are_as_seen(kind: str, values: int, tmp_path: Path) -> None:
    path = saved(kind, tmp_path)
    costs = remat.profile(path, threads=1, time_limit=300)
    assert len(costs.dims) == values
    plan = remat.solve(path, budget="92%", costs=costs, work_limit=2_000_000, cache=False)
    (note,) = (sentence(note) for note in plan.subject.notes if note.kind == PlanNote.SEEN_IN_A_RUN)
    assert note.startswith("as seen in a run on random inputs")
    assert all(f"--dim {name}={size}" in note for name, size in costs.dims.items())
    found = remat.verify(plan)
    assert found.report.strict.after.first == found.promise.live


@pytest.mark.slow
def test_a_plan_for_seen_sizes_runs_on_other_data(tmp_path: Path) -> None:
    path = saved("kept_rows", tmp_path)
    costs = remat.profile(path, threads=1, time_limit=300)
    graph = ingest(path, costs.dims)
    feeds = feeds_of(graph, ops_of(graph), seed=7)
    for name, budget in (("remat", "80%"), ("stock", "100%")):
        plan = remat.solve(path, budget=budget, costs=costs, runtime=name, work_limit=1_000_000, cache=False)
        made = remat.emit(plan)
        for one in (feeds, {"x": np.zeros_like(feeds["x"])}):
            was = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, one)
            now = session(made).run(None, one) if name == "remat" else by_default(made).run(None, one)
            assert all(np.allclose(old, new, rtol=1e-4, atol=1e-5) for old, new in zip(was, now, strict=True))


def by_default(made: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.slow
def test_what_is_stated_is_not_seen(tmp_path: Path) -> None:
    path = saved("kept_rows", tmp_path)
    (name,) = remat.profile(path, threads=1, time_limit=300).dims
    costs = remat.profile(path, threads=1, time_limit=300, dims={name: 17})
    assert dict(costs.dims) == {name: 17}
    assert "sizes" not in (costs.whole.seen or "")


def test_from_paper_nothing_is_seen(tmp_path: Path) -> None:
    with pytest.raises(remat.BadInput, match=r"it depends on data; pass --dim \w+:0=N.*`remat profile` sees"):
        remat.profile(saved("kept_rows", tmp_path), estimate="h100")


def test_what_other_data_may_run_is_named(tmp_path: Path) -> None:
    costs = remat.profile(saved("if_wide", tmp_path), threads=1, time_limit=300)
    assert "what If 'n" in costs.whole.seen
    assert remat.profile(saved("if_known", tmp_path), threads=1, time_limit=300).whole.seen is None


def test_what_is_dropped_is_a_share(tmp_path: Path) -> None:
    """A kernel refuses other ratios, and nothing of the model would be seen."""
    graph = ingest(saved("dropout_asked", tmp_path))
    drawn = [feeds_of(graph, ops_of(graph), seed)["ratio"] for seed in range(8)]
    assert all(0 < ratio < 1 for ratio in drawn)


@pytest.mark.slow
def test_a_loop_that_never_ends_is_refused_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PATIENCE", 3.0)
    monkeypatch.setattr(observing, "PATIENCE_SECONDS", 3.0)
    path = tmp_path / "m.onnx"
    path.write_bytes(Chain("endless", 0).with_twist(endless).SerializeToString())
    with pytest.raises(remat.BadInput, match=r"did not end within [\d.]+ s on random inputs; a Loop that data ends"):
        remat.profile(path, threads=1, time_limit=300)
