"""Repairs, each by itself: what they may change of a plan, and that what they give keeps to the budget."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from remat_cli.model.sessions import DEFAULT, STRICT, Session
from remat_cli.planning import time_plan
from remat_cli.planning.search import repairs
from remat_cli.planning.search.repairs import Fit, lower, repair, settle, walk
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.targets.candidate import Candidate
from solvers.clock import Clock, limited
from solvers.coroutines import run
from solvers.placement import fitting
from solvers.placement.fitting import Fitting, moved_about
from solvers.placement.memory import LaterRuns
from solvers.placement.pattern import outputs_apart
from solvers.problem import Limits
from solvers.schedule import evaluate
from tests.remat_cli.planning.requests import candidate_for, nothing, request_for, within


def repaired_by(request: PlanRequest, candidate: Candidate) -> Candidate | None:
    return run(repair(request, candidate, request.time.repairing()))


def settled_by(request: PlanRequest, candidate: Candidate, fit: Fit = moved_about) -> Candidate | None:
    return run(settle(request, candidate, request.time.repairing(), fit))


KINDS = pytest.mark.parametrize("session", [STRICT, DEFAULT], ids=lambda kind: kind.name)
LARGE = 1 << 40
AMPLE = 1000.0  # seconds, which nothing here takes


def placed(path: Path, session: Session, seed: int | None = 0) -> tuple[PlanRequest, Candidate]:
    """A request with room for everything, and a candidate as it lies there."""
    request = request_for(path, LARGE, session)
    return request, request.place(candidate_for(request.subject, seed))


def check(request: PlanRequest, repaired: Candidate | None, before: Candidate) -> Candidate:
    """A repaired candidate fits, and its order is legal: it costs what evaluating that order says."""
    assert repaired is not None
    assert request.fits(repaired)
    _, outcome = evaluate(before.subject.problem, repaired.order)
    assert repaired.cost == outcome.cost
    assert outcome.peak <= request.budget
    return repaired


@KINDS
def test_what_fits_as_it_is_stays_as_it_is(data: Path, session: Session) -> None:
    request, candidate = placed(data / "torch_cnn.onnx", session)
    just = within(request, request.counted(candidate))
    repaired = check(just, repaired_by(just, candidate_for(request.subject, 0)), candidate)
    assert repaired.order == candidate.order
    assert repaired.schedule.result.notes == ()


@KINDS
def test_what_nothing_can_place_is_not_repaired(data: Path, session: Session) -> None:
    """Inputs and weights alone are more than that."""
    request, candidate = placed(data / "torch_cnn.onnx", session, None)
    tight = within(request, request.subject.problem.resident)
    assert repaired_by(tight, candidate_for(request.subject)) is None
    assert not tight.fits(candidate)


def test_ops_are_moved_about_where_the_block_is_too_high(data: Path) -> None:
    """The same computes, the same cost: in the planned block only their order changes."""
    request, candidate = placed(data / "torch_cnn.onnx", STRICT)
    assert candidate.footprint is not None
    places = candidate.footprint.placement
    assert places is not None
    assert places.block > places.bound  # there is something to gain
    just = within(replace(request, method="milp-paper"), request.counted(candidate) - 64)
    repaired = check(just, settled_by(just, candidate), candidate)
    assert Counter(repaired.order) == Counter(candidate.order)
    assert repaired.cost == candidate.cost
    assert repaired.order != candidate.order or repaired.footprint != candidate.footprint


def test_a_candidate_that_has_its_places_is_not_placed_again(data: Path) -> None:
    request, candidate = placed(data / "torch_cnn.onnx", STRICT)
    assert repaired_by(request, candidate) is candidate
    assert repaired_by(within(request, 1), candidate) is None


def test_a_lower_block_is_of_the_same_computes(data: Path) -> None:
    request, candidate = placed(data / "torch_cnn.onnx", STRICT)
    lowered = lower(request, candidate)
    assert request.counted(lowered) <= request.counted(candidate)
    assert Counter(lowered.order) == Counter(candidate.order)
    assert lowered.footprint is not None
    assert lowered.footprint.placement is not None
    assert lowered.footprint.placement.block >= lowered.footprint.placement.bound
    assert lowered.footprint.placement.block < candidate.footprint.placement.block  # type: ignore[union-attr]


def test_walks_make_a_plan_of_their_own(data: Path) -> None:
    request = request_for(data / "torch_cnn.onnx", LARGE, STRICT, "auto")
    whole = request.place(candidate_for(request.subject))
    less = within(request, int(0.9 * request.counted(whole)))
    walked = check(less, walk(less, whole, less.time.walking()), whole)
    assert walked.made_by == "evict"
    assert walked.cost >= whole.cost


def test_a_paper_s_method_has_no_walks(data: Path) -> None:
    request, candidate = placed(data / "torch_cnn.onnx", STRICT)
    assert walk(replace(request, method="ap-greedy"), candidate, request.time.walking()) is None


def test_where_work_is_limited_no_clock_ends_the_last_placement(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that was found when all work was done is placed the same on a machine that is out of time at once."""
    request, candidate = placed(data / "torch_cnn.onnx", DEFAULT)
    spent = limited(moves=1)
    spent.spend(moves=1)
    late = within(replace(request, method="auto", limits=replace(request.limits, clock=spent)), LARGE)
    assert late.late
    just = within(late, request.counted(candidate) - 4096)
    found = []
    for seconds in (2.0, 0.0):
        monkeypatch.setattr(time_plan, "PLACING_GRACE_SECONDS", seconds)
        moved = settled_by(just, candidate)
        assert moved is not None
        found.append(moved.order)
    assert found[0] == found[1]


def test_ctrl_c_while_a_plan_gets_its_places_does_not_lose_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search had ended by itself, so placing had no grace, and a plan of five times the cost was given."""
    request, candidate = placed(data / "torch_cnn.onnx", STRICT)
    just, pressed = within(request, request.counted(candidate) - 64), list[bool]()
    moved = settled_by(just, candidate)
    assert moved is not None

    def slowly(_: object, __: object, ___: int, clock: Clock) -> Fitting:
        pressed.append(True)
        yield
        return None if clock.interrupts() else moved.order

    monkeypatch.setattr(repairs, "fitted", slowly)
    monkeypatch.setattr(time_plan, "PLACING_GRACE_SECONDS", AMPLE)
    asked = replace(just, method="auto", limits=Limits(Clock(AMPLE, lambda: bool(pressed))))
    found = check(asked, repaired_by(asked, candidate.unplaced), candidate)
    assert found.order == moved.order
    assert asked.time.lowering().interrupts()
    assert not asked.time.repairing().interrupts()
    monkeypatch.setattr(time_plan, "PLACING_GRACE_SECONDS", 0.0)
    assert asked.time.repairing().interrupts()


def test_placing_that_begins_just_before_the_end_has_as_long_as_after_it(data: Path) -> None:
    request = request_for(data / "torch_cnn.onnx", LARGE)
    for seconds in (0.0, 1.0, AMPLE):
        given = replace(request, limits=Limits(Clock(seconds))).time.repairing().seconds
        assert time_plan.PLACING_GRACE_SECONDS <= given <= max(seconds, time_plan.PLACING_GRACE_SECONDS)


def test_a_plan_for_a_default_session_leaves_room_for_what_its_model_adds(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Narrowed to all of the room, ResNet-152's order made a model 5% too large, and there was no time for another."""
    request, candidate = placed(data / "torch_cnn.onnx", DEFAULT)
    assert candidate.model is not None
    subject, prediction = request.subject, candidate.model.prediction
    asked: list[int] = []
    monkeypatch.setattr(fitting, "arrange_in_pattern", lambda *_: nothing())
    monkeypatch.setattr(fitting, "narrowed", lambda memory, *_: nothing(asked.append(memory.room)))
    assert settled_by(replace(request, method="auto"), candidate, fitting.fitted) is None
    own = LaterRuns(outputs_apart(subject.problem), 0).height(candidate.order)
    left = request.room - prediction.rounding - request.target.reserve(subject.problem) - asked[0]
    assert left > prediction.problem.resident  # it does add something
    assert left == prediction.later(candidate.model.hidden) - own
