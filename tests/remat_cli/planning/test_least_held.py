"""Least memory with little work: no budget with the same work finds less."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import remat_cli as remat
from remat_cli.actions.questions import Question, kind_named
from remat_cli.actions.solving import ask, best_by_now
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.so_far import SoFar
from solvers.clock import limited
from solvers.problem import Limits

DATA = Path(__file__).parents[2] / "data"
UNET, CNN = DATA / "torch_unet_convt.onnx", DATA / "torch_cnn.onnx"


@pytest.mark.slow
def test_the_least_within_an_overhead_is_at_most_a_budget_with_a_plan_as_cheap() -> None:
    asked = {"work_limit": 5_000, "cache": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", remat.RematWarning)
        smaller = remat.solve(UNET, budget=1_542_743, **asked)
        least = remat.solve(UNET, minimize="peak", max_overhead=0.1, **asked)
    assert smaller.overhead <= 0.1
    assert least.overhead <= 0.1
    assert least.budget <= smaller.budget


def test_what_is_known_meanwhile_takes_no_longer_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written while the search goes on, and stays if the process ends."""
    known: list[Answer] = []
    keep = SoFar.keep

    def watched(self: SoFar, found: Answer) -> None:
        keep(self, found)
        if self.plan is not None:
            known.append(self.plan)

    monkeypatch.setattr(SoFar, "keep", watched)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", remat.RematWarning)
        remat.solve(CNN, minimize="peak", max_overhead=0.02, work_limit=5_000, cache=False)
    assert known
    assert all(plan.overhead is not None and plan.overhead <= 0.02 for plan in known)


def test_best_by_now_is_no_plan_that_takes_longer_than_may_be() -> None:
    subject, limits = load_subject(CNN, None, {}, kind_named("remat")), Limits(limited(moves=5_000))
    free = ask(subject, Question(minimize="peak"), limits)
    assert free.overhead is not None
    assert free.overhead > 0.02
    known = SoFar(plan=free)
    assert best_by_now(Question(minimize="peak"), known, limits) is free
    assert best_by_now(Question(minimize="peak", max_overhead=0.02), known, limits) is None
