"""Searches limited by work give one answer: in Python as by the command."""

from __future__ import annotations

from pathlib import Path

import remat_cli as remat

FILE = Path(__file__).parents[2] / "data" / "ort_mlp.onnx"


def test_a_sweep_limited_by_work_is_the_same_twice() -> None:
    curves = [remat.sweep(FILE, budgets="80%,90%", work_limit=20_000, cache=False) for _ in range(2)]
    first, second = ([(point.budget, point.cost, point.peak) for point in curve.points] for curve in curves)
    assert first == second
    assert len(first) == 2
