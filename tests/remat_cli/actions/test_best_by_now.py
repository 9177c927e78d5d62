"""What is said when time is up in the middle of a search: no work is done for a plan that stands already."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_cli.actions import solving
from remat_cli.actions.answering import WholeQuestion, answer_whole
from remat_cli.actions.questions import Question, kind_named
from remat_cli.model.quantities import parse_budget
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.so_far import SoFar
from solvers.clock import Clock, limited
from solvers.problem import Limits, Progress

QUESTION = Question(budget=parse_budget("80%"))


@pytest.fixture
def known(data: Path) -> SoFar:
    """A plan that is known to fit, whose order is the latest that was heard of."""
    subject = load_subject(data / "torch_cnn.onnx", None, {}, kind_named("remat"))
    plan = solving.ask(subject, QUESTION, Limits(limited(moves=5_000)))
    assert plan.found
    return SoFar(plan=plan, order=(plan.subject, Progress(0.0, plan.cost, order=plan.candidate.order)))


def test_the_order_of_the_plan_that_stands_is_not_placed_again(known: SoFar, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C on a busy machine that took seconds, for which the command waited."""
    tried = list[int]()

    def count(_: PlanRequest, found: Answer) -> Answer:
        tried.append(found.cost)
        return found

    monkeypatch.setattr(solving, "tried_alone", count)
    assert solving.best_by_now(QUESTION, known, Limits(limited(moves=5_000))) is known.plan
    assert not tried
    known.plan = None
    assert solving.best_by_now(QUESTION, known, Limits(limited(moves=5_000))) is not None
    assert len(tried) == 1


def test_the_answer_that_comes_meanwhile_is_the_answer(known: SoFar, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, known.plan = known.plan, None

    def comes(_: PlanRequest, __: Answer) -> None:
        known.found = answer

    monkeypatch.setattr(solving, "tried_alone", comes)
    assert answer is not None
    assert solving.best_by_now(QUESTION, known, Limits(limited(moves=5_000))) is answer


@pytest.mark.parametrize("ends", ["somebody had enough", "time is up"])
def test_the_leanest_plan_is_made_only_for_who_waits(data: Path, ends: str) -> None:
    """A program waited for it after Ctrl-C, for seconds on a busy machine; where no order was known, none is made."""
    subject, known = load_subject(data / "torch_cnn.onnx", None, {}, kind_named("remat")), SoFar()
    clock = Clock(60.0, stopped=lambda: known.begun) if ends == "somebody had enough" else Clock(0.0)
    asked = WholeQuestion(subject=subject, question=QUESTION, limits=Limits(clock), so_far=known)
    found = answer_whole(asked).found
    assert known.order is None
    assert found.says(PlanNote.LEANEST) is (ends == "time is up")
    assert (found.found or found.enough is not None) is (ends == "time is up")
