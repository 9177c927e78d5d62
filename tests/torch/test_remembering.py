"""Plans kept between runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from remat_cli.results.store import Store
from remat_cli.torch import planning, remembering
from remat_cli.torch.remembering import PastAnswer, Remembered
from solvers.problem import Node, Problem
from tests.torch.models import MODELS
from tests.torch.steps import backend, step, twin


@pytest.mark.slow
def test_the_same_graph_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path))
    torch.manual_seed(0)
    module, arguments = MODELS["gpt"]()
    other = twin(module)
    found = []
    for searching in (True, False):
        torch._dynamo.reset()
        asked = backend("75%", 20_000)
        if not searching:
            monkeypatch.setattr(planning, "_search", lambda *_: pytest.fail("it was searched again"))
        run = torch.compile(module, backend=asked, dynamic=False)
        assert step(module, run, arguments).same_bits(step(other, other, arguments))
        found.append(asked.partitioner.plans[0].found.order)
    assert found[0] == found[1]


@pytest.mark.parametrize("most", [None, 20_000])
def test_another_process_knows_what_was_found_however_it_was_limited(
    most: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path))
    problem = Problem((Node(1, (), (0,)), Node(1, (0,), (1,))), (4, 4), (1,))
    found = Remembered(((0, 1),), 4, (PastAnswer((60.0, most), 9, (0, 1), 8, 2.0),))
    monkeypatch.setattr(remembering, "KNOWN", {})
    assert remembering.remember(problem, "graph", found) == found
    monkeypatch.setattr(remembering, "KNOWN", {})  # as another process has it
    assert remembering.recall(problem, "graph") == found


def test_an_answer_is_for_all_budgets_that_it_fits_or_misses() -> None:
    met, missed = PastAnswer((60.0, None), 9, (0, 1), 6), PastAnswer((60.0, None), 0, (0, 1), 6)
    assert [limit for limit in range(12) if met.holds_for(limit)] == [6, 7, 8, 9]
    assert [limit for limit in range(12) if missed.holds_for(limit)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("wrong", [{"peak": 7}, {"order": [1, 0]}])
def test_an_answer_that_is_not_what_it_was_is_forgotten(
    wrong: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path))
    monkeypatch.setattr(remembering, "KNOWN", {})
    problem = Problem((Node(1, (), (0,)), Node(1, (0,), (1,))), (4, 4), (1,))
    entry = {"time": [60.0, None], "limit": 9, "order": [0, 1], "peak": 8, "bound": None}
    said = {"orders": [[0, 1]], "bound": 0, "answers": [entry, {**entry, **wrong, "limit": 10}]}
    Store(tmp_path).keep("graph", {}, said)
    assert [answer.limit for answer in remembering.recall(problem, "graph").answers] == [9]
