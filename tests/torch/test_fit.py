"""The budget "fit": what is free, less what optimizers are going to hold."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import nn

import remat_cli.torch as remat_torch
from remat_cli.torch import allowance
from remat_cli.torch.beside import state_bytes, state_to_come
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


OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "Adam": torch.optim.Adam,
    "fused": lambda parameters: torch.optim.AdamW(parameters, fused=True, amsgrad=True),
    "foreach": lambda parameters: torch.optim.Adam(parameters, foreach=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, momentum=0.9),
    "Adafactor": torch.optim.Adafactor,  # whose step reads numbers
    "ASGD": torch.optim.ASGD,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_that_is_foretold_is_what_the_first_step_makes(name: str, dtype: torch.dtype) -> None:
    module = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.Linear(128, 8)).to(dtype)
    optimizer = OPTIMIZERS[name]([*module.parameters()])
    told = state_bytes(optimizer)
    assert not optimizer.state
    module(torch.randn(4, 64, dtype=dtype)).sum().backward()
    optimizer.step()
    assert told == state_bytes(optimizer) > 0


def test_an_optimizer_of_which_nothing_is_known_is_told_of() -> None:
    module = nn.Linear(4, 4)
    optimizer = torch.optim.LBFGS(module.parameters())
    with pytest.warns(remat_torch.RematWarning, match="no room is left for it, as what LBFGS will hold"):
        assert state_to_come([*module.parameters()]) == 0
    assert not optimizer.state


class Wrapping(torch.optim.Optimizer):
    """As accelerate's: an optimizer by its class, whose parameters and state are those of another."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    param_groups = property(lambda self: self.optimizer.param_groups)  # type: ignore[assignment]
    state = property(lambda self: self.optimizer.state)  # type: ignore[assignment]


@pytest.mark.filterwarnings("error")
def test_an_optimizer_that_is_wrapped_counts_once() -> None:
    module = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(module.parameters())
    wrapping = Wrapping(Wrapping(optimizer))
    assert state_to_come([*module.parameters()]) == state_bytes(wrapping) == state_bytes(optimizer) > 0
