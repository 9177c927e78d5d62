"""What a refusal says of ops in pieces: only what is less than whole ops are known to need."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import onnx
import pytest

import remat_cli as remat
from remat_cli.actions.piecing import offered
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask
from remat_cli.model.quantities import Budget
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer
from remat_cli.zoo.build import build
from solvers.clock import limited
from solvers.problem import Limits

MOVES = 5_000


@pytest.fixture(scope="module")
def refusal(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """The answer to a request for a tenth of what a training step holds."""
    path = tmp_path_factory.mktemp("step") / "cnn.onnx"
    onnx.save(remat.grad(build("cnn", batch=16)), path)
    asked = Question(budget=Budget(Fraction(1, 10), relative=True))
    return ask(load_subject(path, None, {}), asked, Limits(limited(moves=MOVES)))


@pytest.mark.slow
def test_pieces_are_offered_where_they_need_less(refusal: Answer) -> None:
    found = offered(refusal, Limits(limited(moves=40 * MOVES)))
    assert not refusal.found
    assert found.says(PlanNote.LESS_IN_PIECES)


@pytest.mark.slow
def test_pieces_that_need_more_are_not_offered(refusal: Answer) -> None:
    """As where a plan of whole ops is known that needs less than walks over the pieces reach."""
    found = offered(replace(refusal, enough=1000), Limits(limited(moves=MOVES)))
    assert not found.says(PlanNote.LESS_IN_PIECES)
