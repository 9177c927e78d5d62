"""Modules as users write them train as in eager, bit for bit: by a plan, or by torch's own partition and a warning."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from remat_cli.torch.partition import RematWarning
from tests.torch.steps import Step, backend, step, twin
from tests.torch.users_modules import CASES, Calls

LEFT_TO_TORCH: dict[str, str] = {}  # case -> what the warning says


def loss_of(result: Any) -> torch.Tensor:
    found = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    return sum((leaf.float().square().mean() for leaf in found), torch.zeros(()))


@pytest.mark.parametrize(
    ("name", "dynamic"),
    [*((name, False) for name in sorted(CASES)), *((name, True) for name in sorted(CASES)), ("other sizes", None)],
)
def test_trains_as_in_eager(name: str, dynamic: bool | None) -> None:
    torch.manual_seed(0)
    module, calls = CASES[name]()
    asked = backend("75%", 20_000)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        own = trained(calls, torch.compile(other := twin(module), backend=asked, dynamic=dynamic), other)
    if own != trained(calls, other := twin(module), other):
        # torch's trace of the module differs from eager by itself, as its own op by op backend shows
        torch._dynamo.reset()
        run = torch.compile(other := twin(module), backend="aot_eager", dynamic=dynamic)
        assert own == trained(calls, run, other)
    said = [str(one.message) for one in heard if issubclass(one.category, RematWarning)]
    left = [words for words in said if "torch's own partition" in words]
    assert all(LEFT_TO_TORCH.get(name, "nothing") in words for words in left), left
    assert left or name not in LEFT_TO_TORCH


def trained(calls: Calls, run: Any, other: nn.Module) -> list[Step]:
    """The steps that `run` takes, which is `other` or what that was compiled to."""
    found = []
    for seed, call in enumerate(calls):
        given = tuple(x.detach().clone().requires_grad_(x.requires_grad) for x in call)
        found.append(step(other, lambda *arguments: loss_of(run(*arguments)), given, seed))
    return found
