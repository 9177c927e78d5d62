"""Arenas where little work may be done: to place one plan takes more of it than the limit has."""

from __future__ import annotations

import warnings

import onnx

import remat_cli as remat
from tests.remat_cli.kinds import model

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
