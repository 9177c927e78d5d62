"""What tries beside a relaxation count: nothing, until they are adopted."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from solvers import scip
from solvers.clock import limited
from solvers.methods.exact.improve import Improver
from solvers.orders.best import Best, in_order
from solvers.problem import Limits
from tests.solvers.training_chain import LAYERS, training_chain


def test_a_window_says_nothing_of_its_work_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its turn may yet be dropped, so whoever waits for this search's work must not hear of it."""
    problem, heard = training_chain(Random(43)), list[scip.Settings]()
    best = Best(problem, 1 << 40, Limits(limited(moves=1 << 40)), in_order)
    best.offer(range(2 * LAYERS), "test")
    improver = Improver(best, problem.ended(), 1.0, lambda: False)
    solve = scip.solve

    def listened(program: scip.Program, settings: scip.Settings, starts: list[list[float]]) -> scip.ProgramAnswer:
        heard.append(settings)
        return solve(program, settings, starts)

    monkeypatch.setattr(scip, "solve", listened)
    turn = improver.attempt(replace(improver.turn, waits=0, order=np.arange(2 * LAYERS)))
    assert turn.by == "windows"
    (settings,) = heard
    assert settings.clock.work is not best.limits.clock.work
    assert best.limits.clock.work.known == 0
