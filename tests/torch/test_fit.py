"""The budget "fit": what is free, less what optimizers are going to hold."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

from remat_cli.torch import allowance
from tests.torch.steps import backend, step

FREE = 10**6


@pytest.mark.parametrize("stepped", [False, True])
def test_room_is_left_for_the_state_that_an_optimizer_has_not_made(
    monkeypatch: pytest.MonkeyPatch, stepped: bool
) -> None:
    gc.collect()
    monkeypatch.setattr(allowance, "usable_bytes", lambda _: FREE)
    module, x = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)), torch.randn(16, 8)
    optimizer = torch.optim.Adam(module.parameters())
    other = torch.optim.Adam(nn.Linear(64, 64).parameters())  # of no tensor of this graph
    if stepped:
        module(x).sum().backward()
        optimizer.step()
    asked = backend("fit")
    run = torch.compile(lambda x: module(x).square().mean(), backend=asked, dynamic=False)
    step(module, run, (x,))
    weights = sum(parameter.nbytes for parameter in module.parameters())
    state = 0 if stepped else 2 * weights + 4 * len(list(module.parameters()))  # and a count of steps each
    (plan,) = asked.plans
    assert plan.found is not None, plan.why
    assert plan.found.budget == FREE + weights + x.nbytes - state
    assert not other.state
