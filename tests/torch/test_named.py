"""The backend by its name, as torch finds it among entry points; and a torch that lacks what is needed."""

from __future__ import annotations

import gc
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import torch
from torch import nn

import remat_cli.torch as remat_torch
from remat_cli.torch.named import named
from tests.torch.steps import step, twin


def network() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    layers = [nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(16, 16), nn.GELU()), torch.randn(32, 16)


class Loss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.x = network()

    def forward(self) -> torch.Tensor:
        return self.inner(self.x).square().mean()


def test_torch_finds_the_backend_by_its_name() -> None:
    (found,) = entry_points(group="torch_dynamo_backends", name="remat")
    assert found.load() is remat_torch.remat
    assert "remat" in torch.compiler.list_backends()


def test_a_module_trains_by_name_and_options_within_its_budget() -> None:
    module = Loss()
    other = twin(module)
    run = torch.compile(module, backend="remat", options={"budget": "90%", "time_limit": 1.0}, dynamic=False)
    assert step(module, run, ()).same_bits(step(other, other, ()))
    (graph,) = remat_torch.report(run).graphs
    assert graph.measured == graph.predicted <= graph.budget < graph.before


def test_a_module_compiled_in_place_takes_its_budget_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMAT_BUDGET", "91%")
    monkeypatch.setenv("REMAT_TIME_LIMIT", "1")
    module = Loss()
    module.compile(backend="remat", dynamic=False)
    module().backward()
    (graph,) = remat_torch.report(module).graphs
    assert graph.measured == graph.predicted <= graph.budget < graph.before


@pytest.mark.parametrize(("budget", "lives"), [("86%", True), ("87%", False)])
def test_a_later_module_keeps_its_plan_and_is_metered_beside_the_weights_of_another_that_lives(
    budget: str, lives: bool
) -> None:
    first, later = Loss(), Loss()
    later.inner.append(nn.Linear(16, 16))
    left = sum(x.nbytes for x in [*first.parameters(), first.x]) if lives else 0
    for module in (first, later):
        module.compile(backend="remat", options={"budget": budget, "time_limit": 1.0}, dynamic=False)
    first().backward()
    first.zero_grad()
    if not lives:
        del first, module
        gc.collect()
    later().backward()
    graph = remat_torch.report(later).graphs[-1]
    assert graph.measured == graph.predicted + left
    assert graph.predicted <= graph.budget < graph.before


@pytest.mark.parametrize("lives", [True, False])
def test_a_later_module_is_planned_beside_the_weights_of_another_that_lives(lives: bool) -> None:
    """Two trainings in turn, as of a generator and a discriminator: the first holds its weights through both steps, and
    is counted once where a graph of its own is compiled later, for another size."""
    first, later, alone = Loss(), Loss(), Loss()
    for module in (later, alone):
        module.inner.append(nn.Linear(16, 16))
    left = sum(x.nbytes for x in [*first.parameters(), first.x]) if lives else 0
    alone.compile(backend="remat", options={"budget": "1GB"}, dynamic=False)
    alone().backward()
    whole = remat_torch.report(alone).graphs[-1].before
    limit = whole * 85 // 100
    for module in (first, later):
        module.compile(backend="remat", options={"budget": limit + left, "time_limit": 1.0}, dynamic=False)
    first().backward()
    first.zero_grad()
    if not lives:
        del first, module
        gc.collect()
    later().backward()
    graph = remat_torch.report(later).graphs[-1]
    assert graph.budget == limit
    assert graph.measured <= limit + left
    assert graph.predicted <= graph.budget < graph.before
    if lives:
        first.x = first.x[:-1].clone()
        first().backward()
        other = sum(x.nbytes for x in [*later.parameters(), *(p.grad for p in later.parameters()), later.x])
        assert remat_torch.report(first).graphs[-1].budget == limit + left - other


def test_options_are_checked_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMAT_BUDGET", raising=False)
    with pytest.raises(ValueError, match="needs a budget: options="):
        named({})
    with pytest.raises(ValueError, match=r"has the options budget, costs.*, not bugdet"):
        named({"budget": "60%", "bugdet": "60%"})
    assert named({"budget": "60%"}) is named({"budget": "60%"})
    assert named({"budget": "60%"}) is not named({"budget": "61%"})


WITHOUT = """
import warnings
import torch
import torch._functorch.partitioners as partitioners
del partitioners.cleanup_recompute_tags
import remat_cli.torch
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    run = torch.compile(torch.nn.Linear(2, 2), backend=remat_cli.torch.backend(budget="60%"))
    named = torch.compile(torch.nn.Linear(2, 2), backend="remat", options={"budget": "60%"})
    for each in (run, named):
        each(torch.ones(3, 2)).sum().backward()
print([str(one.message) for one in heard if one.category is remat_cli.torch.RematWarning])
"""


@pytest.mark.slow
def test_a_torch_that_lacks_what_is_needed_trains_without_a_budget() -> None:
    said = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True).stdout
    assert said.count("is not one that remat knows how to work with") == 2
    assert "cleanup_recompute_tags" in said
    assert "'aot_eager' compiles instead, without a budget" in said


def test_what_goes_wrong_here_never_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("no such argument")

    monkeypatch.setattr(sys.modules["remat_cli.torch.backend"], "aot_autograd", lambda **_: fail)
    module = Loss()
    other = twin(module)
    run = torch.compile(module, backend=remat_torch.backend("80%"), dynamic=False)
    with pytest.warns(remat_torch.RematWarning, match="'aot_eager' compiles this graph.*TypeError: no such argument"):
        assert step(module, run, ()).same_bits(step(other, other, ()))
