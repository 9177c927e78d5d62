"""Large plans made to hold a little less: legal and placed by the word of others, and cheaper than a walk for less."""

from __future__ import annotations

import json
from pathlib import Path

from remat_cli.planning.loading import load_subject
from remat_cli.planning.targets.target import in_units
from solvers.clock import Clock, limited
from solvers.coroutines import run
from solvers.placement.lifetimes import ALIGNMENT
from solvers.placement.memory import LaterRuns, PlannedBlock
from solvers.placement.narrowing import narrowed
from solvers.placement.packing import pack
from solvers.plan import lower
from solvers.simulate import simulate
from tests.solvers.placement.test_packing import check
from tests.solvers.placement.witness import held_later, requests


def test_an_order_that_had_no_places_is_changed_until_it_has(data: Path) -> None:
    """A plan of an MLP-Mixer's training graph for 75%, as the search left it, and a room that is less by 2%."""
    problem = in_units(load_subject(data / "placing" / "mixer.problem.json", None, {}).problem, ALIGNMENT)
    stored = json.loads((data / "placing" / "mixer.order.json").read_text())
    room, order = int(0.98 * (stored["budget"] - problem.resident)), stored["order"]
    before = simulate(problem, lower(problem, order))
    assert before.peak - problem.resident > room
    found = run(narrowed(PlannedBlock(problem, room), order, 0, limited(moves=800_000)))
    assert found is not None
    plan = lower(problem, found)
    after = simulate(problem, plan)
    assert after.peak - problem.resident <= room
    assert after.cost < 1.05 * before.cost
    lifetimes = requests(problem, plan).lifetimes
    packing = pack(lifetimes, room=room)
    assert packing.block <= room
    check(lifetimes, packing, ALIGNMENT)
    assert found == run(narrowed(PlannedBlock(problem, room), order, 0, limited(moves=800_000)))


def test_ops_moved_about_have_places_in_what_is_live_at_once(data: Path) -> None:
    """The same plan, and no more room than its live bytes: as the search left it, a block is 1.3% higher."""
    problem = in_units(load_subject(data / "placing" / "mixer.problem.json", None, {}).problem, ALIGNMENT)
    order = json.loads((data / "placing" / "mixer.order.json").read_text())["order"]
    plan = lower(problem, order)
    before = simulate(problem, plan)
    room = before.peak - problem.resident
    assert pack(requests(problem, plan).lifetimes, effort=0).block > 1.01 * room
    found = run(narrowed(PlannedBlock(problem, room), order, 0, limited(moves=10_000_000)))
    assert found is not None
    moved = lower(problem, found)
    assert simulate(problem, moved).cost == before.cost
    lifetimes = requests(problem, moved).lifetimes
    packing = pack(lifetimes, room=room)
    assert packing.block <= room
    check(lifetimes, packing, ALIGNMENT)


def test_an_order_that_has_its_places_stays_as_it_is(data: Path) -> None:
    problem = in_units(load_subject(data / "placing" / "mixer.problem.json", None, {}).problem, ALIGNMENT)
    order = range(len(problem.nodes))
    room = pack(requests(problem, lower(problem, order)).lifetimes, clock=Clock(0)).block
    assert run(narrowed(PlannedBlock(problem, room), order, 0, Clock())) == tuple(order)


def test_where_there_is_no_room_at_all_nothing_is_found(data: Path) -> None:
    problem = in_units(load_subject(data / "placing" / "mixer.problem.json", None, {}).problem, ALIGNMENT)
    assert run(narrowed(PlannedBlock(problem, ALIGNMENT), range(len(problem.nodes)), 0, limited(moves=400_000))) is None


def test_an_order_whose_later_runs_hold_too_much_is_changed_until_they_do_not(data: Path) -> None:
    """The same plan in a default session, which takes places as it is asked for them, and a room that is less by 2%."""
    problem = load_subject(data / "placing" / "mixer.problem.json", None, {}).problem
    order = json.loads((data / "placing" / "mixer.order.json").read_text())["order"]
    before = lower(problem, order)
    room = int(0.98 * held_later(requests(problem, before)))
    found = run(narrowed(LaterRuns(problem, room), order, 0, limited(moves=600_000)))
    assert found is not None
    plan = lower(problem, found)
    assert held_later(requests(problem, plan)) <= room
    assert simulate(problem, plan).cost < 1.05 * simulate(problem, before).cost
