"""A baseline's plan is its own: no other method's schedule ever takes its place, whatever the budget and session."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvers.clock import Clock
from solvers.problem import Limits
from solvers.registry import METHODS
from solvers.schedule import schedule
from tests.cli.running import Command
from tests.remat_cli.steps import network

BASELINES = ("griewank", "periodic", "chen-greedy", "full-checkpoint", "rotor")


@pytest.mark.parametrize("budget", ["100%", "90%"])
@pytest.mark.parametrize("method", BASELINES)
def test_alone_it_costs_what_the_method_itself_finds(method: str, budget: str, remat: Command, tmp_path: Path) -> None:
    """Written, it may need more than the budget, and is then refused; but it is never another schedule."""
    subject = network(tmp_path, "vgg16", batch=4, image=64, hidden=32)
    ran = remat("solve", subject.path, "--method", method, "--budget", budget, "--session", "strict", "--json")
    if ran.code:
        assert ran.code == 5
        return
    found = ran.object
    assert found["made_by"] == method
    own = schedule(subject.problem, found["budget"], METHODS[method].load(), Limits(Clock(60.0)))
    assert own.outcome is not None
    assert found["cost"] >= own.outcome.cost * 0.999
    assert not any("walk" in note for note in found["notes"])
