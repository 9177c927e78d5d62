"""Plans kept between runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from remat_cli.torch import planning, remembering
from remat_cli.torch.remembering import Remembered
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
    found = Remembered(((0, 1),), 4, ((60.0, most),))
    monkeypatch.setattr(remembering, "KNOWN", {})
    assert remembering.remember_known(problem, "graph", found) == found
    monkeypatch.setattr(remembering, "KNOWN", {})  # as another process has it
    assert remembering.recall_known(problem, "graph") == found
