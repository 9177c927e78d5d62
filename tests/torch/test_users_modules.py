"""Modules as users write them train as in eager, bit for bit: by a plan, or by torch's own partition and a warning."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from tests.sampling import few
from tests.torch.more_modules import MORE
from tests.torch.rare_modules import RARE
from tests.torch.steps import Step, backend, said, step, twin
from tests.torch.users_modules import CASES, WIDTH, Calls, linear, rows


def loss_of(result: Any) -> torch.Tensor:
    found = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    return sum((leaf.float().square().mean() for leaf in found), torch.zeros(()))


ALL = {**RARE, **MORE, **CASES}


EVERY = [*((name, False) for name in sorted(ALL)), *((name, True) for name in sorted(CASES)), ("other sizes", None)]


@pytest.mark.parametrize(("name", "dynamic"), few(EVERY, 20, several=True))
def test_trains_as_in_eager(name: str, dynamic: bool | None) -> None:
    torch.manual_seed(0)
    module, calls = ALL[name]()
    asked = backend("75%", 20_000)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        own = trained(calls, torch.compile(other := twin(module), backend=asked, dynamic=dynamic), other)
    if own != trained(calls, other := twin(module), other):
        # torch's trace of the module differs from eager by itself, as its own op by op backend shows
        torch._dynamo.reset()
        run = torch.compile(other := twin(module), backend="aot_eager", dynamic=dynamic)
        assert own == trained(calls, run, other)
    left = [words for words in said(heard) if "torch's own partition" in words]
    assert not left


def trained(calls: Calls, run: Any, other: nn.Module) -> list[Step]:
    """The steps that `run` takes, which is `other` or what that was compiled to."""
    found = []
    for seed, call in enumerate(calls):
        given = tuple(x.detach().clone().requires_grad_(x.requires_grad) for x in call)
        found.append(step(other, lambda *arguments: loss_of(run(*arguments)), given, seed))
    return found


def test_training_and_evaluation_take_turns_as_in_eager() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(linear(), nn.BatchNorm1d(WIDTH), nn.Dropout(0.3), linear(), nn.Tanh())
    run = torch.compile(other := twin(module), backend=backend("95%", 500), dynamic=False)
    assert turns(other, run, x := rows()) == turns(module, module, x)


def turns(module: nn.Module, run: Any, x: torch.Tensor) -> list[Step]:
    """Steps between which modules are told to evaluate, weights to stay, and no gradients are asked for."""
    found = [step(module, lambda x: loss_of(run(x)), (x,))]
    module.eval()
    with torch.no_grad():
        module.train()(x)  # moves the averages
    found.append(step(module.eval(), lambda x: loss_of(run(x)), (x,), 1))
    with torch.inference_mode():
        drawn = run(x).sum()
    module[0].requires_grad_(False)
    found.append(step(module.train(), lambda x: loss_of(run(x)) + drawn, (x,), 2))
    module[0].requires_grad_(True)
    first, second = run(x), run(x.cos())  # two forward passes, and then their backward passes
    found.append(step(module, lambda _: loss_of((second, first.exp())), (x,), 3))
    return found
