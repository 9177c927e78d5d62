"""Rotor on its own toy, as `zoo` and `grad` make it: a backward op belongs to the stage of the gradient it consumes."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvers.methods.chains.from_graph import cut
from solvers.problem import Limits, Status
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.schedule import Schedule, baseline, schedule
from tests.ample import ample
from tests.remat_cli.steps import network


def solved(folder: Path, method: str, share: float) -> Schedule:
    problem = network(folder, "rotor-toy").problem
    budget = int(share * baseline(problem)[1].peak)
    return schedule(problem, budget, METHODS[method].load(), Limits(ample()))


def test_a_layer_is_a_stage(tmp_path: Path) -> None:
    """Each linear layer's two products are in the layer's own stage."""
    subject = network(tmp_path, "rotor-toy")
    smaller = reduced(subject.problem)
    for number, stage in enumerate(cut(smaller.problem).stages[:6], 1):
        names = [subject.nodes[smaller.node_of(index)] for index in stage.backward]
        assert {name.split("/")[0] for name in names if "Gemm" in name} == {f"fc{number}"}


@pytest.mark.parametrize("method", ["rotor", "revolve", "rotor-floating", "rotor+"])
@pytest.mark.parametrize("share", [0.6, 0.75, 0.95])
def test_no_dearer_than_periodic_or_the_optimum(method: str, share: float, tmp_path: Path) -> None:
    found = solved(tmp_path, method, share)
    assert found.result.status is Status.FEASIBLE
    optimum, periodic = solved(tmp_path, "milp", share), solved(tmp_path, "periodic", share)
    assert found.outcome
    assert optimum.outcome
    assert periodic.outcome
    assert optimum.result.bound is not None  # it is within a gap of that
    assert optimum.result.bound <= found.outcome.cost <= 1.1 * optimum.outcome.cost
    if periodic.result.status is Status.FEASIBLE:
        assert found.outcome.cost <= periodic.outcome.cost
