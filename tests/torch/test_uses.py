"""Compiled modules in other uses than step after step: the same gradients as eager, or words."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

import remat_cli.torch as remat_torch
from remat_cli.torch.partition import RematWarning
from tests.torch.steps import backend, twin

WIDTH = 64


def made() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())]
    return nn.Sequential(*layers), torch.randn(256, WIDTH)


def once_then_twice(run: Callable[..., Any], x: torch.Tensor) -> None:
    """The backward pass is compiled by a step that retains nothing."""
    run(x).square().mean().backward()
    loss = run(x).square().mean()
    loss.backward(retain_graph=True)
    loss.backward()


def two_losses(run: Callable[..., Any], x: torch.Tensor) -> None:
    y = run(x)
    y[:, 0].mean().backward(retain_graph=True)
    y[:, 1].square().mean().backward()


def created(run: Callable[..., Any], x: torch.Tensor) -> None:
    run(x).mean().backward()
    run(x).square().mean().backward(create_graph=True)


@pytest.mark.parametrize("use", [once_then_twice, two_losses, created])
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
def test_a_graph_may_be_retained(use: Callable[..., Any]) -> None:
    module, x = made()
    other = twin(module)
    use(torch.compile(module, backend=backend("80%", 500), dynamic=False), x)
    use(other, x)
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(own.grad, its.grad) for own, its in pairs)


class Same(nn.Module):
    """A layer that is called twice with the same, as where a loss is taken of features and of what is made of them."""

    def __init__(self, last: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), last)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.layers(x), self.layers(x), self.layers(x).sin()


@pytest.mark.parametrize("last", [nn.LayerNorm(WIDTH), nn.BatchNorm1d(WIDTH), nn.Dropout(0.3), nn.Softmax(-1)])
def test_results_that_are_the_same_are_returned_apart(last: nn.Module) -> None:
    torch.manual_seed(0)
    module, x, asked = Same(last), torch.randn(256, WIDTH), backend("80%", 500)
    other = twin(module)

    def use(run: Callable[..., Any]) -> list[torch.Tensor]:
        torch.manual_seed(1)
        first, second, third = run(x)
        (first.square().mean() + second.abs().mean() + third.mean()).backward()
        with torch.no_grad():
            first.add_(1)
        return [first, second, third]

    own, its = use(torch.compile(module, backend=asked, dynamic=False)), use(other)
    assert all(map(torch.equal, own, its))
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(own.grad, its.grad) for own, its in pairs)
    assert all(plan.found is not None for plan in asked.plans)


def test_a_retained_graph_that_holds_more_than_the_budget_is_told() -> None:
    module, x = made()
    asked = backend("80%", 500)
    loss = torch.compile(module, backend=asked, dynamic=False)(x).square().mean()
    with pytest.warns(RematWarning, match="values stay after their last use, as with backward.retain_graph=True"):
        loss.backward(retain_graph=True)
    assert asked.step.meter.peak > asked.plans[0].found.budget


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_that_are_left_to_eager_are_named(kind: Any) -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.given, self.inner, self.head = nn.Linear(8, 8), kind(8, 16, 2), nn.Linear(16, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.inner(self.given(x))[0])

    module, x = Tagger(), torch.randn(5, 2, 8)
    other, asked = twin(module), backend("1GB", 500)
    run = torch.compile(module, backend=asked)
    # newer versions of torch compile what is around the layer
    layer = rf"{kind.__name__}\(8, 16, num_layers=2\)|the recurrent layer 'inner'"
    with pytest.warns(RematWarning, match=f"leaves ({layer}) to eager"):
        run(x).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RematWarning)
        run(x).sum()
    other(x).sum().backward()
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(own.grad, its.grad) for own, its in pairs)


@pytest.mark.skipif(torch.__version__.startswith("2.10"), reason="torch 2.10 does not say that it leaves a function")
def test_a_function_that_a_loop_leaves_to_eager_is_named() -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x).tanh()
                if x.abs().max().item() > 9:
                    x = x / 2
            return x.square().mean()

    torch.manual_seed(0)
    module, x = Looking(), torch.randn(4, 8)
    run = torch.compile(module, backend=backend("80%", 500))
    with pytest.warns(RematWarning, match=r"leaves forward \(.*test_uses.py line \d+\) to eager.*Tensor.item") as heard:
        run(x).backward()
    assert len(heard) == 1


@torch.compiler.disable
def left_out(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


class Disabled(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(left_out(x))


class InParts(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint_sequential(self, 2, x, use_reentrant=False)


class Averaged(nn.Sequential):
    """BatchNorm takes a plain average of all batches, and looks at how many there were."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(nn.functional.batch_norm(x, None, None, training=True)).cos()


LEFT = {
    "left_out to eager": lambda: Disabled(nn.Linear(8, 8)),
    r"torch\.utils\.checkpoint\.checkpoint_sequential to eager": lambda: InParts(nn.Linear(8, 8), nn.Linear(8, 8)),
    r"what .*test_uses\.py line \d+ calls": lambda: Averaged(nn.Linear(8, 8), nn.BatchNorm1d(8, momentum=None)),
}


@pytest.mark.parametrize("words", LEFT)
def test_what_torch_keeps_from_being_compiled_is_named(words: str) -> None:
    torch.manual_seed(0)
    module, x = LEFT[words](), torch.randn(4, 8)
    other = twin(module)
    with pytest.warns(RematWarning, match=words):
        torch.compile(module, backend=backend("80%", 500))(x).sum().backward()
    other(x).sum().backward()
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(own.grad, its.grad) for own, its in pairs)


def test_modules_with_backward_hooks_are_told_of() -> None:
    module, x = made()
    module[2].register_full_backward_hook(lambda *_: None)
    run = torch.compile(module, backend=backend("100%"), dynamic=False)
    with pytest.warns(RematWarning, match=r"leaves modules with a backward hook to eager.*Tensor.register_hook"):
        run(x).square().mean().backward()


def test_a_second_module_is_told_of_as_the_first_was() -> None:
    """Though torch gives the same reason in the same words."""
    for reset in (False, False, True):
        if reset:
            torch._dynamo.reset()
        module, x = made()
        module[2].register_full_backward_hook(lambda *_: None)
        run = torch.compile(module, backend=backend("100%"), dynamic=False)
        with pytest.warns(RematWarning, match="leaves modules with a backward hook to eager"):
            run(x).square().mean().backward()


def test_a_whole_step_is_compiled_as_one_function() -> None:
    """Its backward pass is compiled while it is called, inside a function that torch.compile is at work on."""
    module, x = made()
    other = twin(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def whole(x: torch.Tensor) -> torch.Tensor:
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.compile(whole, backend=backend("80%", 500), dynamic=False)
    its = torch.optim.SGD(other.parameters(), lr=0.1)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = other(x).square().mean()
        loss.backward()
        its.step()
        return loss.detach()

    traced = torch.compile(step, backend="eager", dynamic=False)  # in which torch 2.10's optimizer rounds otherwise
    for _ in range(2):
        assert torch.equal(run(x), traced(x))
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(own, other) for own, other in pairs)


def test_a_compiled_optimizer_is_no_part_of_the_steps_peak() -> None:
    module, x = made()
    asked = backend("100%")
    run = torch.compile(module, backend=asked, dynamic=False)
    optimizer = torch.optim.AdamW(module.parameters(), foreach=False)
    run(x[:4]).square().mean().backward()
    held = remat_torch.report(asked).graphs[0].measured
    torch.compile(optimizer.step, backend=asked)()
    (graph,) = remat_torch.report(asked).graphs
    assert graph.measured == held


def stored(module: Any) -> Any:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("again", [copy.deepcopy, stored])
def test_a_compiled_module_is_copied_and_stored(again: Callable[[Any], Any]) -> None:
    module, x = made()
    other = twin(module)
    run = torch.compile(module, backend=remat_torch.backend("100%"), dynamic=False)
    run(x).mean().backward()
    second = again(run)
    second.zero_grad()
    second(x).square().mean().backward()
    other(x).square().mean().backward()
    pairs = zip(second.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(own.grad, its.grad) for own, its in pairs)
    assert all(graph.predicted is not None for graph in remat_torch.report(second).graphs)
