"""Answers are what they were: who alters a plan on purpose records it anew, with `python -m tests.recorded --write`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recorded.__main__ import ANSWERS
from tests.recorded.asking import answered
from tests.recorded.questions import QUESTIONS
from tests.sampling import few


@pytest.mark.parametrize("name", few([name for name, question in QUESTIONS.items() if question.quick], 12))
def test_the_answer_is_as_recorded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remat_cli.actions.interrupts.LEAST_GRACE_SECONDS", 1e6)  # it would end the tests' own process
    assert answered(QUESTIONS[name], tmp_path)[0] == json.loads(ANSWERS.read_text())[name]


def test_every_question_has_an_answer() -> None:
    assert set(QUESTIONS) == set(json.loads(ANSWERS.read_text()))
