"""Gradients that autograd would copy into their weights' layouts: the plan counts the copies, by an outer meter."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import remat_cli.torch as remat_torch
from tests.torch.steps import Outer, backend, step, twin


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(8, 256, 3), nn.Conv2d(256, 64, 2)
        self.weight = nn.Parameter(torch.randn(64, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(self.first(x.to(memory_format=torch.channels_last)))
        return (self.second(h).mean((2, 3)) @ self.weight.T.contiguous()).square().mean()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_gradients_are_copied_where_the_plan_says(layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    module, x = Convolutions().to(memory_format=layout), torch.randn(2, 8, 6, 6)
    other = twin(module)
    run = torch.compile(module, backend=backend("100%", 500), dynamic=False)
    assert step(module, run, (x,)) == step(other, other, (x,))
    strides = [[parameter.grad.stride() for parameter in one.parameters()] for one in (module, other)]
    assert strides[0] == strides[1]
    module.zero_grad()
    with Outer([*module.parameters(), x]) as outer:
        run(x).backward()
    (graph,) = remat_torch.report(run).graphs
    assert outer.meter.peak == graph.predicted


def test_gradients_of_values_between_graphs_keep_their_layout() -> None:
    """There autograd copies nothing, and kernels may sum otherwise in another layout."""
    torch.manual_seed(0)
    module, x = Convolutions(), torch.randn(2, 8, 6, 6, requires_grad=True)
    other = twin(module)
    run = torch.compile(module, backend=backend("100%", 500), dynamic=False)
    found = []
    for own in (run, other):
        own(x.sin().contiguous()).backward()
        found.append(x.grad)
        x.grad = None
    assert torch.equal(*found)
