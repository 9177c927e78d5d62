"""A budget that a refusal names as the least is enough when it is asked for."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import remat_cli as remat
from remat_cli.planning.stock import target
from remat_cli.planning.stock.same_kernels import rewrite_surely
from tests.sampling import few

DATA = Path(__file__).parents[2] / "data"
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("torch_cnn.onnx", {}),
    ("torch_cnn.onnx", {"runtime": "stock"}),
    ("torch_unet_convt.onnx", {"method": "evict"}),
]


@pytest.fixture(autouse=True)
def _nothing_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a refusal says of pieces is tested elsewhere, and takes its time."""
    monkeypatch.setattr("remat_cli.actions.piecing.OFFER_SECONDS", 0.0)


@pytest.mark.parametrize("name, options", few(ASKED, 1, several=True), ids=str)
def test_the_least_budget_that_a_refusal_names_is_enough(name: str, options: dict[str, Any]) -> None:
    with pytest.raises((remat.Infeasible, remat.NoPlan)) as refused:
        remat.solve(DATA / name, budget="30%", work_limit=5_000, cache=False, **options)
    named = re.search(r"try --budget (\S+%)", str(refused.value))
    assert named
    for least in (named[1], refused.value.least_peak):
        plan = remat.solve(DATA / name, budget=least, work_limit=5_000, cache=False, **options)
        assert plan.peak <= plan.budget


@pytest.mark.slow
def test_a_refusal_makes_each_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Counter[object]()

    def count(subject: Any, plan: Any, *more: Any) -> Any:
        made[id(subject.graph), plan] += 1
        return rewrite_surely(subject, plan, *more)

    monkeypatch.setattr(target, "rewrite_surely", count)
    with pytest.raises(remat.RematError):
        remat.solve(DATA / "torch_cnn.onnx", budget="45%", work_limit=2_000, cache=False, runtime="stock")
    assert made
    assert max(made.values()) == 1


@pytest.mark.parametrize("name", ["torch_cnn.onnx", "torch_mlp.onnx"])
def test_least_memory_is_optimal_only_where_no_budget_below_it_can_have_a_plan(name: str) -> None:
    least = remat.solve(DATA / name, minimize="peak", work_limit=5_000, cache=False)
    proved = False
    try:
        remat.solve(DATA / name, budget=least.budget - 1, work_limit=5_000, cache=False)
    except remat.Infeasible:
        proved = True
    except remat.NoPlan:
        pass
    assert proved or least.status != "optimal"
