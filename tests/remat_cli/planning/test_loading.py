"""What users are told of a graph before anything is planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiles.costs import Costs, OpCost
from remat_cli.ingest import ingest
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.loading import load_subject
from solvers.notes import Note


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.parametrize("how", ["estimated", "inside"])
def test_what_estimated_ops_work_in_on_a_gpu_is_told_to_be_unknown(kind: str, how: str, data: Path) -> None:
    path = data / "ort_mlp.onnx"
    graph = ingest(path, {})
    names = [op.name for op in graph.ops]
    costs = Costs(graph.path, graph.sha256, {}, {"kind": kind}, {name: OpCost(100, 0, "measured") for name in names})
    assert not unknown(path, costs)
    largest = max(graph.ops, key=lambda op: sum(graph.values[name].bytes for name in op.writes))
    told = unknown(path, replace(costs, ops={**costs.ops, largest.name: OpCost(100, 0, how)}))
    assert [note.values for note in told] == ([(largest.op_type, largest.name, "")] if kind == "cuda" else [])


def unknown(path: Path, costs: Costs) -> list[Note]:
    return [note for note in load_subject(path, costs, {}).notes if note.kind == PlanNote.KERNELS_UNKNOWN]
