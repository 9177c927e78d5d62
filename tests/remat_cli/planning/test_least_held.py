"""Least memory with little work: no budget with the same work finds less."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import remat_cli as remat

UNET = Path(__file__).parents[2] / "data" / "torch_unet_convt.onnx"


@pytest.mark.slow
def test_the_least_within_an_overhead_is_at_most_a_budget_with_a_plan_as_cheap() -> None:
    asked = {"work_limit": 5_000, "cache": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", remat.RematWarning)
        smaller = remat.solve(UNET, budget=1_542_743, **asked)
        least = remat.solve(UNET, minimize="peak", max_overhead=0.1, **asked)
    assert smaller.overhead <= 0.1
    assert least.overhead <= 0.1
    assert least.budget <= smaller.budget
