"""A loss outside of the compiled module: what eager holds beside the graphs is in no figure, and is told."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import remat_cli.torch as remat_torch
from remat_cli.model.quantities import parse_bytes
from remat_cli.torch import eager
from remat_cli.torch.private import SHOWS_SAVED
from remat_cli.torch.whole_step import FEW
from tests.sampling import few
from tests.torch.steps import Outer, backend, said, twin

CLASSES, BATCH = 200, 256
Loss = Callable[[torch.Tensor], torch.Tensor]


def network(classes: int = CLASSES) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, classes))


def labels(classes: int = CLASSES) -> torch.Tensor:
    return torch.arange(BATCH) % classes


class WithLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network = network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.network(x), labels())


def cross_entropy(result: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(result, labels(result.shape[-1]))


def contrasted(result: torch.Tensor) -> torch.Tensor:
    unit = F.normalize(result, dim=-1)
    return F.cross_entropy(unit @ unit.T / 0.1, torch.arange(BATCH))


def binary(result: torch.Tensor) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(result, torch.ones_like(result))


def diverging(result: torch.Tensor) -> torch.Tensor:
    return F.kl_div(result.log_softmax(-1), torch.full_like(result, 0.1), reduction="sum")


def squared(result: torch.Tensor) -> torch.Tensor:
    """It saves nothing that the graph does not know, but makes gradients."""
    return result.square().mean()


LOSSES: list[Loss] = [squared, *([cross_entropy, binary, contrasted, diverging] if SHOWS_SAVED else [])]


def first_step(module: nn.Module, loss: Loss) -> tuple[list[str], Any, int]:
    """What is said of it, its report, and what a later one holds by a meter of every op."""
    x = torch.randn(BATCH, 32)
    run = torch.compile(module, backend=backend("80%", 5_000), dynamic=False)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        loss(run(x)).backward()
    module.zero_grad()
    with Outer([*module.parameters(), x]) as outer:
        loss(run(x)).backward()
    return said(heard), remat_torch.report(run), outer.meter.peak


def told(words: list[str]) -> list[str]:
    return [text for text in words if "with what ran in eager" in text]


@pytest.mark.parametrize("loss", few(LOSSES, 3))
def test_a_loss_in_eager_that_holds_more_than_the_figure_is_told_once(loss: Loss) -> None:
    words, report, held = first_step(network(), loss)
    (graph,) = report.graphs
    assert held > graph.predicted + FEW
    (text,) = told(words)
    assert text in str(report)
    least = re.search(r"at least (\S+),", text)
    assert graph.predicted + FEW < parse_bytes(least[1]) <= 1.001 * held  # as far as it is shown


@pytest.mark.parametrize("make", [WithLoss, lambda: network(2)])
def test_a_step_that_holds_what_its_figure_says_is_not_told(make: Callable[[], nn.Module]) -> None:
    loss = cross_entropy if make is not WithLoss else torch.Tensor.mean
    words, report, held = first_step(make(), loss)
    (graph,) = report.graphs
    assert held <= graph.predicted + FEW
    assert not told(words)


@pytest.mark.skipif(not SHOWS_SAVED, reason="this torch does not show what is saved")
def test_what_eager_saved_is_not_unpacked_to_be_counted() -> None:
    """A hook of the user's runs once for each value: to unpack it may mean to compute it."""
    packed, unpacked = list[torch.Tensor](), list[torch.Tensor]()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        unpacked.append(tensor)
        return tensor

    def loss(result: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return cross_entropy(result)

    whole = torch.autograd.backward
    words, _, _ = first_step(network(), loss)
    assert told(words)
    assert len(unpacked) == len(packed) > 0
    assert torch.autograd.backward is whole


@pytest.mark.parametrize("part", ["saved_by", "plain_tensors_of"])
def test_what_cannot_be_counted_leaves_the_step_alone(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise RuntimeError("torch changed")

    module, x = network(), torch.randn(BATCH, 32)
    other = twin(module)
    monkeypatch.setattr(eager, part, fail)
    run = torch.compile(module, backend=backend("80%", 5_000), dynamic=False)
    cross_entropy(run(x)).backward()
    cross_entropy(other(x)).backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(module.parameters(), other.parameters(), strict=True))
