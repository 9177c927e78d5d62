"""Where nothing fits, the plan is the leanest known, however the budget is asked."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from remat_cli.torch import joint as joints
from remat_cli.torch import planning, remembering
from remat_cli.torch.estimates import estimates
from remat_cli.torch.lowering import lower
from remat_cli.torch.planning import PlannedOrder, find
from solvers.clock import limited
from solvers.methods.auto.leanest import Lean
from solvers.orders.bounds import PeakBound
from solvers.problem import Problem, Result, Status
from solvers.schedule import baseline
from tests.sampling import few
from tests.torch.capturing import captured


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("REMAT_RESULTS", "off")
    remembering.KNOWN.clear()
    yield
    remembering.KNOWN.clear()


@pytest.fixture(scope="module")
def dense() -> Problem:
    torch.manual_seed(0)
    module, _, count = captured(Dense(), (torch.randn(64, 16),))
    return lower(joints.read(module, count), estimates("cpu")).problem


@pytest.fixture
def problem() -> Problem:
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Tanh())]
    module, _, count = captured(Squared(*layers), (torch.randn(64, 16),))
    return lower(joints.read(module, count), estimates("cpu")).problem


class Squared(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).square().mean()


class Dense(nn.Module):
    """Each layer reads what all before it made."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16 * (place + 1), 16) for place in range(5)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = [x]
        for layer in self.layers:
            made.append(torch.tanh(layer(torch.cat(made, -1))))
        return made[-1].square().mean()


def plan(problem: Problem, share: float, moves: int = 1, seeds: tuple[planning.Order, ...] = ()) -> PlannedOrder:
    return find(problem, int(share * baseline(problem)[1].peak), limited(None, moves), lambda: seeds)


@pytest.mark.parametrize("moves", [1, 4_000])
def test_a_budget_that_can_be_met_is_met_though_a_smaller_one_was_missed_before(dense: Problem, moves: int) -> None:
    """What a search of few moves finds of the leanest binds what is asked later."""
    assert not plan(dense, 0.3, moves).fits
    assert plan(dense, 0.56, moves).fits


def test_a_smaller_budget_holds_no_more_than_a_plan_that_fitted_a_larger_one(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    lean = plan(problem, 0.0, 4_000)
    remembering.KNOWN.clear()
    whole = tuple(range(len(problem.nodes)))
    monkeypatch.setattr(planning, "find_lean", lambda *_: Lean(whole, PeakBound(0, None, ())))
    alone = plan(problem, 0.0)
    assert alone.outcome.peak > lean.outcome.peak  # it is not found by itself
    remembering.KNOWN.clear()
    share = lean.outcome.peak / lean.before.peak + 0.01
    fitting = plan(problem, share, seeds=(lean.order,))
    assert fitting.fits
    assert plan(problem, 0.0).outcome.peak <= fitting.outcome.peak


def test_the_leanest_is_as_lean_as_what_a_search_within_a_budget_finds(dense: Problem) -> None:
    """With nothing known of the graph before either, but for a step that is not worth a search."""
    within = plan(dense, 0.545, 150_000)
    assert within.fits
    remembering.KNOWN.clear()
    assert plan(dense, 0.0, 150_000).outcome.peak <= within.outcome.peak * (1 + planning.LAST_STEP)


def test_a_budget_that_is_missed_holds_what_every_budget_that_is_missed_holds(dense: Problem) -> None:
    """A search within this one finds a leaner plan than the search for the leanest, which still does not fit."""
    lean = plan(dense, 0.0, 30_000)
    remembering.KNOWN.clear()
    missed = find(dense, lean.outcome.peak - 4_000, limited(None, 30_000), tuple)
    assert not missed.fits
    assert missed.order == lean.order
    assert plan(dense, 0.0, 30_000).order == lean.order


def test_the_leanest_is_searched_once_and_for_no_budget(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    lean = planning._lean
    monkeypatch.setattr(planning, "_lean", lambda *given: asked.append(given[1]) or lean(*given))
    found = []
    for share in (0.3, 0.1, 0.0):
        found.append(plan(problem, share).order)
    remembering.KNOWN.clear()
    found.append(plan(problem, 0.2).order)
    assert len(asked) == 2
    assert asked[0] == asked[1]  # from the same known orders, whatever a search within the budget had found
    assert len(set(found)) == 1


@pytest.mark.parametrize("moves", [500, 4_000])
@pytest.mark.parametrize("processes", [1, 9])
@pytest.mark.parametrize("seed", [None, *few(range(4), 1)])
def test_a_smaller_budget_never_holds_more_in_whatever_order_budgets_are_asked(
    dense: Problem, seed: int | None, processes: int, moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going up without a seed. The processes know of one another by the results that they keep."""
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path))
    shares = [0.3, 0.5, 0.52, 0.54, 0.545, 0.55, 0.57, 0.6, 0.62, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0]
    if seed is not None:
        random.Random(seed).shuffle(shares)
    found: list[tuple[int, int]] = []
    for share in shares + shares[::-1]:
        if processes > 1:
            remembering.KNOWN.clear()
        planned = plan(dense, share, moves)
        found.append((planned.budget, planned.outcome.peak))
    assert all(held <= other for budget, held in found for larger, other in found if budget < larger)
    assert len({held for budget, held in found if held > budget}) == 1


def test_a_plan_for_less_memory_is_a_candidate_for_more(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = [plan(problem, share, 1_000).outcome.cost for share in (0.5, 0.65)]
    assert costs[0] > costs[1]
    monkeypatch.setattr(planning, "_search", lambda _, known, *__: (known, Result(Status.UNKNOWN, None)))
    assert plan(problem, 0.75).outcome.cost == costs[1]
