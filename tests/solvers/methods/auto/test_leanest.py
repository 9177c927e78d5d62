"""The leanest order: the same for everybody who gives it time, and some legal order for those who have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_cli.formats.problemfile import read
from solvers.clock import Clock
from solvers.methods.auto.leanest import find_lean, list_walked
from solvers.problem import Limits
from solvers.schedule import evaluate

MLP = Path(__file__).parents[3] / "data" / "checkmate" / "linear8.problem.json"


@pytest.mark.parametrize("limits", [Limits(Clock(0)), Limits(Clock(1e6, stopped=lambda: True))], ids=["late", "ended"])
def test_where_time_is_up_there_is_an_order_all_the_same(limits: Limits) -> None:
    problem = read(MLP).problem
    order = find_lean(problem, limits).order
    at_leisure = find_lean(problem, Limits(Clock(1e6))).order
    assert evaluate(problem, at_leisure)[1].peak < evaluate(problem, order)[1].peak
    assert len(list_walked(problem, limits)) == 1
