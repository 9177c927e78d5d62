"""Several graphs in one training step keep to one budget, by a meter; what is beside them and changing sizes too."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import remat_cli.torch as remat_torch
from remat_cli.torch import whole_step
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.beside import state_bytes
from remat_cli.torch.device_memory import usable_bytes
from remat_cli.torch.estimates import estimates
from remat_cli.torch.metering import Meter
from remat_cli.torch.partition import Partitioner
from remat_cli.torch.sharing import unforeseen
from remat_cli.units import show_bytes
from solvers.clock import limited
from tests.sampling import few
from tests.torch.steps import measured, step, twin

WIDTH = 64


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(2 * WIDTH) for _ in range(4))
        self.second = nn.ModuleList(nn.Linear(2 * WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for first, norm, second in zip(self.first, self.norms, self.second, strict=True):
            x = torch.tanh(second(norm(nn.functional.gelu(first(x)))))
        return x


class Broken(nn.Module):
    """Three graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Part() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.parts[0](x)
        torch._dynamo.graph_break()  # in a loop, torch would compile nothing
        x = self.parts[1](x)
        torch._dynamo.graph_break()
        return self.parts[2](x).square().mean()


class Repeated(nn.Module):
    """One graph that runs three times, each time with other weights."""

    def __init__(self, compiled: Backend) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Part() for _ in range(3))
        for part in self.parts:
            part.compile(backend=compiled, dynamic=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = part(x)
        return x.square().mean()


def asked(budget: str | int, beside: Any = 0) -> Backend:
    return Backend(Partitioner(allowance_of(budget, beside), estimates("cpu"), lambda _: limited(30, 20_000)))


def without_recomputation(make: Any) -> int:
    """What a step of this holds at most, measured."""
    backend = asked("100%")
    module, run, arguments = make(backend)
    step(module, run, arguments)
    torch._dynamo.reset()
    return backend.step.meter.peak


def broken(backend: Backend) -> tuple[nn.Module, Any, tuple[torch.Tensor]]:
    torch.manual_seed(0)
    module = Broken()
    return module, torch.compile(module, backend=backend, dynamic=False), (torch.randn(512, WIDTH),)


def repeated(backend: Backend) -> tuple[nn.Module, Any, tuple[torch.Tensor]]:
    torch.manual_seed(0)
    module = Repeated(backend)
    return module, module, (torch.randn(512, WIDTH),)


@pytest.mark.parametrize("make", [broken, repeated])
@pytest.mark.parametrize("share", few([85, 65], 1))
def test_several_graphs_keep_to_one_budget(make: Any, share: int) -> None:
    whole = without_recomputation(make)
    budget = whole * share // 100
    backend = asked(budget)
    module, run, arguments = make(backend)
    eager = Broken()
    eager.load_state_dict(module.state_dict())
    with pytest.warns(remat_torch.RematWarning, match="together"):
        first = step(module, run, arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error", remat_torch.RematWarning)
        for seed in range(2):
            assert step(module, run, arguments, seed).same_bits(step(eager, eager, arguments, seed))
    assert first.loss == step(eager, eager, arguments).loss
    assert measured(backend, module, run, arguments) <= budget
    assert remat_torch.report(backend).graphs[0].measured <= budget


def test_where_plans_hold_more_than_foreseen_they_are_made_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step held beside its plans says too little here of the plans that come next."""
    budget = without_recomputation(broken) * 3 // 4
    said = itertools.chain([-budget // 5], itertools.repeat(0))
    monkeypatch.setattr(whole_step, "unforeseen", lambda *given: unforeseen(*given) + next(said))
    backend = asked(budget)
    module, run, arguments = broken(backend)
    for _ in range(2):
        with pytest.warns(remat_torch.RematWarning, match="the next step compiles them again"):
            step(module, run, arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error", remat_torch.RematWarning)
        step(module, run, arguments)
    assert measured(backend, module, run, arguments) <= budget


def test_what_cannot_hold_less_is_compiled_once_more_and_not_again() -> None:
    backend = asked(1)
    module, run, arguments = broken(backend)
    with pytest.warns(remat_torch.RematWarning, match="the next step compiles them again"):
        step(module, run, arguments)
    with pytest.warns(remat_torch.RematWarning, match="no less is known"):
        step(module, run, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("make", [broken, repeated])
@pytest.mark.parametrize("share", [95, 75])
def test_a_share_is_of_the_whole_step(make: Any, share: int) -> None:
    whole, backend = without_recomputation(make), asked(f"{share}%")
    module, run, arguments = make(backend)
    for _ in range(2):
        step(module, run, arguments)
    assert measured(backend, module, run, arguments) <= 1.001 * share / 100 * whole


def one(backend: Backend) -> tuple[nn.Module, Any, tuple[torch.Tensor]]:
    torch.manual_seed(0)
    module = Part()
    run = torch.compile(lambda x: module(x).square().mean(), backend=backend, dynamic=False)
    return module, run, (torch.randn(512, WIDTH),)


def accumulated(run: Any, x: torch.Tensor) -> None:
    for seed in range(3):
        (run(x.roll(seed, 0)) / 3).backward()


@pytest.mark.parametrize("make", few([one, broken], 1))
def test_gradients_of_earlier_batches_are_part_of_the_budget(make: Any) -> None:
    budget = without_recomputation(make) * 3 // 4
    backend = asked(budget)
    module, run, (x,) = make(backend)
    other = twin(module)
    with pytest.warns(remat_torch.RematWarning, match="gradients of earlier batches"):
        accumulated(run, x)
    for net in (module, other):
        net.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error", remat_torch.RematWarning)
        accumulated(run, x)
    eager = other if make is broken else lambda x: other(x).square().mean()
    accumulated(eager, x)
    gradients = [parameter.grad for parameter in module.parameters()]
    assert all(torch.equal(own, its.grad) for own, its in zip(gradients, other.parameters(), strict=True))
    backend.step.meter, backend.step.always = Meter([*module.parameters(), *gradients, x]), True
    run(x).backward()
    assert backend.step.meter.peak <= budget


def test_gradients_of_earlier_batches_are_told_of_where_nothing_fits() -> None:
    backend = asked(1)
    _, run, (x,) = one(backend)
    with pytest.warns(remat_torch.RematWarning, match="gradients of earlier batches; no less is known"):
        accumulated(run, x)


@pytest.mark.slow
def test_graphs_that_fit_together_are_compiled_once() -> None:
    backend = asked(2 * without_recomputation(broken))
    module, run, arguments = broken(backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", remat_torch.RematWarning)
        step(module, run, arguments)
        step(module, run, arguments)
    assert len(backend.plans) == 3


OPTIMIZERS = {
    "AdamW": torch.optim.AdamW,
    "AdamW, fused": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "SGD": torch.optim.SGD,
    "momentum": lambda parameters: torch.optim.SGD(parameters, momentum=0.9),
    "RMSprop": torch.optim.RMSprop,
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizers_state_is_foretold(name: str) -> None:
    module = Part()
    optimizer = OPTIMIZERS[name](module.parameters())
    foretold = state_bytes(optimizer)
    module(torch.randn(4, WIDTH)).sum().backward()
    optimizer.step()
    assert state_bytes(optimizer) == foretold
    assert name == "SGD" or foretold > 0


def test_what_is_beside_is_part_of_the_budget() -> None:
    module = twin(net := Part())
    x, optimizer = torch.randn(512, WIDTH), torch.optim.AdamW(module.parameters())
    plain, beside = asked("100%"), asked(4_000_000, optimizer)
    step(net, torch.compile(lambda x: net(x).sum(), backend=plain), (x,))
    torch._dynamo.reset()
    step(module, torch.compile(lambda x: module(x).sum(), backend=beside), (x,))
    assert plain.step.meter.peak > 4_000_000 - state_bytes(optimizer) >= beside.step.meter.peak


@pytest.mark.slow
def test_fit_asks_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < usable_bytes(torch.device("cpu")) < 2**50
    monkeypatch.setattr("remat_cli.torch.allowance.usable_bytes", lambda device: 2_500_000)
    module, backend = Part(), asked("fit")
    step(module, torch.compile(lambda x: module(x).sum(), backend=backend), (torch.randn(512, WIDTH),))
    given = sum(parameter.nbytes for parameter in module.parameters()) + 512 * WIDTH * 4
    assert backend.plans[0].found.budget == 2_500_000 + given
    assert backend.step.meter.peak <= 2_500_000 + given < backend.plans[0].found.before.peak


def test_sizes_that_grow_over_the_budget_are_told() -> None:
    module, backend = Part(), asked(3_500_000)
    run = torch.compile(lambda x: module(x).sum(), backend=backend, dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", remat_torch.RematWarning)
        for rows in (256, 128):
            step(module, run, (torch.randn(rows, WIDTH),))
    with pytest.warns(remat_torch.RematWarning, match=r"of these sizes a graph holds ([\d.]+MB), more than") as heard:
        held = measured(backend, module, run, (torch.randn(700, WIDTH),))
    assert f"holds {show_bytes(held)}," in str(heard[0].message)
    assert len(backend.plans) == 1
