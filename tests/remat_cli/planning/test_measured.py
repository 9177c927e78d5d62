"""Where models hold something else than is predicted, the budget asked for follows what is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx
import pytest

from remat_cli.model.sessions import DEFAULT
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search import request as requests
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Checked
from remat_cli.planning.search.find import find
from remat_cli.planning.search.measured import measured
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.targets.candidate import Candidate, Footprint
from solvers.notes import Note
from solvers.problem import Status
from tests.remat_cli.fusing_models import fusing_model
from tests.remat_cli.planning.requests import candidate_for, played, request_for

BUDGET = 1 << 40
MB = 1 << 20


@dataclass
class Machine:
    """A machine on which each plan's model holds `holds` of its budget; `asked`: the budgets that plans were made for.

    `cost`: the next plan is dearer by one than the last, so that each is another; `nothing_below`: no plan is found.
    """

    request: PlanRequest
    candidate: Candidate
    holds: Callable[[int], int | None]
    nothing_below: int = 0
    asked: list[int] = field(default_factory=list)

    def answer(self) -> Answer:
        return played(measured(self.request), lambda attempt: Checked(self.search(attempt)))

    def search(self, attempt: Attempt) -> Answer:
        request, found = attempt.searched, self.request.answer_of(self.candidate, 0.0, cut=False)
        self.asked.append(request.budget)
        if request.budget < self.nothing_below:
            return replace(found.given_up(Note(PlanNote.MADE_FOR_LESS)), budget=request.budget)
        held = self.holds(request.budget)
        if held is None:
            return found.given_up(Note(PlanNote.UNTRIED))
        promise = request.target.with_peaks(self.candidate.promise, (held, held))
        return replace(found, candidate=replace(self.candidate, footprint=Footprint(promise)), budget=request.budget)


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Machine]:
    """Searches answer as the machine says."""

    def made(holds: Callable[[int], int | None], nothing_below: int = 0) -> Machine:
        path = tmp_path / "fusing.onnx"
        onnx.save(fusing_model(28), path)
        request = request_for(path, BUDGET, DEFAULT, "auto")
        behaviour = replace(request.subject.behaviour, peaks=(2 * BUDGET, 2 * BUDGET), optimized=True)
        request = replace(request, subject=replace(request.subject, behaviour=behaviour))
        return Machine(request, request.place(candidate_for(request.subject)), holds, nothing_below)

    return made


def test_what_a_model_holds_too_much_is_asked_for_less(machine: Callable[..., Machine]) -> None:
    """Each model holds a tenth more than its plan was made for."""
    there = machine(lambda budget: budget + BUDGET // 10)
    found = there.answer()
    assert found.found
    assert found.budget == BUDGET
    assert found.promise is not None
    assert found.promise.later is not None
    assert found.promise.later <= BUDGET
    assert there.asked[0] == BUDGET
    assert there.asked[1] <= BUDGET - BUDGET // 10
    assert found.schedule.result.bound is None  # what was proved is of what is predicted


def test_what_a_model_does_not_need_a_cheaper_plan_may(machine: Callable[..., Machine]) -> None:
    """Each model holds half of what its plan was made for: a plan is asked for that was made for more."""
    there = machine(lambda budget: budget // 2)
    found = there.answer()
    assert found.found
    assert max(there.asked) > BUDGET
    assert found.budget == BUDGET


def test_what_holds_too_much_whatever_is_asked_is_no_plan(machine: Callable[..., Machine]) -> None:
    there = machine(lambda _: BUDGET + MB, nothing_below=BUDGET // 2)
    found = there.answer()
    assert not found.found
    assert found.status is Status.UNKNOWN
    assert there.asked == sorted(there.asked, reverse=True)


def test_plans_that_are_tried_are_searched_for_as_later_runs_hold_them(machine: Callable[..., Machine]) -> None:
    """An Electra had no plan at 75% where orders were searched for as the first run holds them."""
    request = machine(lambda budget: budget).request
    problem, subject = request.subject.problem, request.subject
    outputs = sum(problem.sizes[value] for value in set(problem.outputs))
    assert request.sized(subject).problem.resident == problem.resident + outputs
    foretold = replace(subject, behaviour=replace(subject.behaviour, peaks=None))
    assert request.sized(foretold).problem.resident == problem.resident


def test_a_model_that_never_runs_ends_the_search(machine: Callable[..., Machine]) -> None:
    """A search that is limited by work alone asks once, and says that nothing was tried."""
    there = machine(lambda _: None)
    found = there.answer()
    assert there.request.limits.clock.most is not None
    assert not found.found
    assert found.says(PlanNote.UNTRIED)
    assert there.asked == [BUDGET]


def test_a_real_search_whose_models_never_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: plans are found and made, their models do not run, and each is tried once."""
    path = tmp_path / "fusing.onnx"
    onnx.save(fusing_model(28), path)
    request = request_for(path, BUDGET, DEFAULT, "evict")
    whole = request.counted(request.place(candidate_for(request.subject)))
    behaviour = replace(request.subject.behaviour, peaks=(whole, whole))
    request = replace(request, subject=replace(request.subject, behaviour=behaviour), budget=whole)
    ran: list[object] = []
    monkeypatch.setattr(requests, "peaks", lambda graph, model, *_: ran.append(model.SerializeToString()))
    found = find(measured(request))
    assert not found.found
    assert ran
    assert len(set(ran)) == len(ran)
