"""The compiled arena against the one on paper, and orders that are arranged until they run in it."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from remat_cli.planning.loading import load_subject
from remat_cli.planning.targets.target import in_units
from solvers.clock import Clock
from solvers.placement import arranging
from solvers.placement.arena import refused_of
from solvers.placement.arranging import arrange_in_arena
from solvers.placement.region import ALIGNMENT, fits
from solvers.plan import lower
from solvers.problem import Problem
from solvers.schedule import evaluate
from solvers.simulate import simulate
from tests.solvers.placement.test_region import scaled
from tests.solvers.random_problems import random_order


@pytest.mark.parametrize("seed", range(60))
def test_the_compiled_arena_is_the_one_on_paper(seed: int) -> None:
    problem = scaled(seed)
    order = random_order(random.Random(seed), problem, 4)
    plan = lower(problem, order)
    live = simulate(problem, plan).peak - problem.resident
    for room in range(live // 2, live * 2, max(ALIGNMENT, live // 9)):
        assert (refused_of(problem, order, room) == 0) == fits(problem, plan, room)


@pytest.fixture
def mixer(data: Path) -> tuple[Problem, list[int], int]:
    """An MLP-Mixer's training graph, a plan of it for 75% that is too large for an arena of that, and the room."""
    problem = in_units(load_subject(data / "placing" / "mixer.problem.json", None, {}).problem, ALIGNMENT)
    stored = json.loads((data / "placing" / "mixer.order.json").read_text())
    room, order = stored["budget"] - problem.resident, stored["order"]
    assert not fits(problem, lower(problem, order), room)
    return problem, order, room


def test_an_order_is_arranged_until_it_runs(
    mixer: tuple[Problem, list[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arranging, "GOES", 4)
    problem, order, room = mixer
    found = arrange_in_arena(problem, order, room, 0, Clock())
    assert found is not None
    plan, outcome = evaluate(problem, found)
    assert fits(problem, plan, room)
    assert outcome.cost <= 1.03 * evaluate(problem, order)[1].cost


def test_where_ops_are_only_moved_nothing_more_is_repeated(mixer: tuple[Problem, list[int], int]) -> None:
    problem, order, room = mixer
    found = arrange_in_arena(problem, order, room + room // 50, 0, Clock(), reorder_only=True)
    assert found is not None
    assert fits(problem, lower(problem, found), room + room // 50)
    assert Counter(found) <= Counter(order)
