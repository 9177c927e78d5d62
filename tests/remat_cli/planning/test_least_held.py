"""Least memory with little work: no budget with the same work finds less.

In an arena, to place one plan takes more work than such a limit has.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import onnx
import pytest

import remat_cli as remat
from remat_cli.planning.targets import repairs
from solvers.clock import Clock
from tests.remat_cli.kinds import model

UNET = Path(__file__).parents[2] / "data" / "torch_unet_convt.onnx"
LESS, MORE = 251_000, 257_856  # bytes, far above the least


def solved(budget: int | None = None) -> remat.Planned:
    dropout: onnx.ModelProto = model("dropout_unseeded")
    asked = {"minimize": "peak"} if budget is None else {"budget": budget}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", remat.RematWarning)
        return remat.solve(dropout, allocator="arena", work_limit=60_000, cache=False, **asked)


def test_the_least_is_at_most_a_budget_that_has_a_plan() -> None:
    assert solved().budget <= solved(LESS).budget == LESS


def test_a_larger_budget_has_a_plan_where_a_smaller_has() -> None:
    assert solved(MORE).budget == MORE


def test_no_smaller_budget_has_a_plan_where_larger_ones_have_none() -> None:
    """An arena's free memory lies in pieces: this one has a plan at 98.5% of what was the least, and none at 99%."""
    asked = {"allocator": "arena", "work_limit": 20_000, "cache": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", remat.RematWarning)
        smaller = remat.solve(model("lstm"), budget=1_066_384, **asked)
        assert remat.solve(model("lstm"), minimize="peak", **asked).budget <= smaller.budget


def test_the_least_within_an_overhead_is_at_most_a_budget_with_a_plan_as_cheap() -> None:
    asked = {"work_limit": 5_000, "cache": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", remat.RematWarning)
        smaller = remat.solve(UNET, budget=1_542_743, **asked)
        least = remat.solve(UNET, minimize="peak", max_overhead=0.1, **asked)
    assert smaller.overhead <= 0.1
    assert least.overhead <= 0.1
    assert least.budget <= smaller.budget


def test_all_placing_of_a_request_in_an_arena_shares_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: dict[int, int] = {}
    grace = repairs._grace

    def noted(request: repairs.PlanRequest) -> Clock:
        spent[id(request.placing)] = request.placing.spent
        kept.append(request.placing)
        return grace(request)

    kept: list[object] = []  # else another may have the same id
    monkeypatch.setattr(repairs, "_grace", noted)
    solved()
    assert len(spent) > 1
    assert max(spent.values()) <= 1_000_000
