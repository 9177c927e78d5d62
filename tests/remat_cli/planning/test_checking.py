"""What a plan must pass before it is given: the kernels of its model, and where models are tried, a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from remat_cli.checking.trying import Peaks
from remat_cli.model.sessions import DEFAULT, STRICT
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search import request as requests
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Checked
from remat_cli.planning.search.checking import check
from remat_cli.planning.search.known import tried_alone
from remat_cli.planning.search.measured import witnessed
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.stock import same_kernels
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.time_plan import TRIAL_SECONDS
from remat_cli.rewrite import Rewritten
from tests.remat_cli.fusing_models import fusing_model
from tests.remat_cli.planning.requests import alone, candidate_for, played, request_for, within

LARGE = 1 << 40


@pytest.fixture
def fusing(tmp_path: Path) -> PlanRequest:
    """A default session's request for a model of which that session makes kernels of its own."""
    path = tmp_path / "fusing.onnx"
    onnx.save(fusing_model(28), path)
    request = request_for(path, LARGE, DEFAULT, "auto")
    assert request.target.bears_witness(request.subject)
    assert not request.target.tries_plans(request.subject)
    return request


def tried(request: PlanRequest) -> PlanRequest:
    """The same of a model that was seen to hold something else than is predicted."""
    behaviour = replace(request.subject.behaviour, peaks=(LARGE // 2, LARGE // 2))
    return replace(request, subject=replace(request.subject, behaviour=behaviour))


def passed(request: PlanRequest, candidate: Candidate) -> Answer:
    return check(alone(request), request.answer_of(candidate, 0.0, cut=False)).found


def astray(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Onnxruntime makes other kernels around that value whenever its op is computed twice."""

    def around(_: object, __: object, model: Rewritten) -> tuple[frozenset[str], frozenset[str], None]:
        copies = Counter(model.prediction.origin.values())
        return frozenset({value} if copies[value] > 1 else ()), frozenset(), None

    monkeypatch.setattr(same_kernels, "_faults", around)


def test_a_model_with_the_original_s_kernels_is_witnessed(fusing: PlanRequest) -> None:
    candidate = fusing.place(candidate_for(fusing.subject))
    assert passed(fusing, candidate).found


def test_a_model_that_goes_astray_is_no_plan(fusing: PlanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = fusing.place(candidate_for(fusing.subject))
    monkeypatch.setattr(same_kernels, "_faults", lambda *_: (frozenset({"x"}), frozenset(), None))
    assert not passed(fusing, candidate).found


def test_an_op_whose_copies_go_astray_is_run_once(fusing: PlanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that copies an op is asked again, and the note of the plan that comes names what is run once."""
    subject = fusing.subject
    graph = subject.graph
    assert graph is not None
    twice = candidate_for(subject, 28)
    index, count = Counter(twice.order).most_common(1)[0]
    assert count > 1
    value = graph.ops[index].writes[0]
    astray(monkeypatch, value)
    asked: list[PlanRequest] = []

    def search(attempt: Attempt) -> Checked:
        request = attempt.searched
        asked.append(request)
        free = not request.subject.problem.nodes[index].once
        found = twice if free else replace(candidate_for(request.subject), subject=request.subject)
        return check(attempt, request.answer_of(request.place(found), 0.0, cut=False))

    found = played(witnessed(fusing, LARGE), search)
    assert len(asked) > 1
    assert found.found
    assert found.schedule.plan is not None
    assert Counter(found.schedule.plan.order())[index] == 1
    assert found.says(PlanNote.RUN_ONCE)
    assert found.subject is subject


def test_a_plan_is_run_before_it_is_given(fusing: PlanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its model is seen to hold stands in the promise, and a plan from elsewhere that holds too much is none."""
    request = tried(fusing)
    candidate = request.place(candidate_for(request.subject))
    monkeypatch.setattr(requests, "peaks", lambda *_: (1000, 2000))
    ran = passed(request, candidate)
    assert ran.promise is not None
    assert (ran.promise.live, ran.promise.later) == (1000, 2000)
    whole = request.answer_of(candidate, 0.0, cut=False)
    assert tried_alone(request, whole) is not None
    monkeypatch.setattr(requests, "peaks", lambda *_: (1000, LARGE + 1))
    assert tried_alone(replace(request, trials={}), whole) is None


def test_a_model_that_does_not_run_is_no_plan(fusing: PlanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    request = tried(fusing)
    monkeypatch.setattr(requests, "peaks", lambda *_: None)
    candidate = request.place(candidate_for(request.subject))
    assert not passed(request, candidate).found


def test_where_work_is_limited_a_model_that_never_ends_is_tried_once(
    fusing: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a search has all the time in the world: one trial has a limit of its own, and there is no second."""
    request, asked, now = tried(fusing), list[float](), [0.0]

    def never_ends(*given: object) -> Peaks | None:
        seconds = given[4]
        assert isinstance(seconds, float)
        asked.append(seconds)
        now[0] += seconds
        return None

    monkeypatch.setattr(requests, "peaks", never_ends)
    monkeypatch.setattr(requests, "monotonic", lambda: now[0])
    for seed in (None, 1, 2):
        candidate: Candidate = request.place(candidate_for(request.subject, seed))
        assert not passed(request, candidate).found
    assert asked == [TRIAL_SECONDS]


def test_strict_sessions_need_no_witness(data: Path) -> None:
    request = request_for(data / "torch_cnn.onnx", LARGE, STRICT)
    candidate = request.place(candidate_for(request.subject))
    assert not request.target.bears_witness(request.subject)
    assert tried_alone(request, request.answer_of(candidate, 0.0, cut=False)) is not None
    assert tried_alone(within(request, 1), request.answer_of(candidate, 0.0, cut=False)) is None
