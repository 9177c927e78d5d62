"""Quieter orders: the same computes by `lower` and `simulate`, and places for an order that had none."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from remat_cli.planning.loading import load_subject
from remat_cli.planning.targets.target import in_units
from solvers.clock import Clock
from solvers.coroutines import run
from solvers.placement.fitting import moved_about
from solvers.placement.lifetimes import ALIGNMENT
from solvers.placement.memory import PlannedBlock
from solvers.placement.packing import pack
from solvers.placement.quiet import quieter
from solvers.plan import lower
from solvers.simulate import simulate
from tests.solvers.placement.test_packing import check
from tests.solvers.placement.witness import requests
from tests.solvers.random_problems import random_order, random_problem


@pytest.mark.parametrize("seed", range(30))
def test_the_same_computes_within_the_same_room(seed: int) -> None:
    source = random.Random(seed)
    problem = random_problem(source, 12)
    order = random_order(source, problem, 4)
    room = simulate(problem, lower(problem, order)).peak - problem.resident
    for found, _ in zip(quieter(PlannedBlock(problem, room), order, seed, Clock()), range(4), strict=False):
        outcome = simulate(problem, lower(problem, found))
        assert outcome.peak <= problem.resident + room
        assert Counter(found) <= Counter(order)


def test_an_order_that_had_no_places_is_moved_about_until_it_has(data: Path) -> None:
    """A plan of an MLP-Mixer's training graph for 75%, as the search left it."""
    problem = in_units(load_subject(data / "placing" / "mixer.problem.json", None, {}).problem, ALIGNMENT)
    stored = json.loads((data / "placing" / "mixer.order.json").read_text())
    room, order = stored["budget"] - problem.resident, stored["order"]
    assert pack(requests(problem, lower(problem, order)).lifetimes, effort=0, room=room).block > room
    found = run(moved_about(PlannedBlock(problem, room), order, 0, Clock()))
    assert found is not None
    assert Counter(found) == Counter(order)
    assert found == run(moved_about(PlannedBlock(problem, room), order, 0, Clock()))
    plan = lower(problem, found)
    lifetimes = requests(problem, plan).lifetimes
    packing = pack(lifetimes, room=room)
    check(lifetimes, packing, ALIGNMENT)
    assert packing.block <= room
