"""What a router of experts chose is kept: a second run by kernels that round otherwise could choose others."""

from __future__ import annotations

import torch
from torch import nn

from tests.torch.steps import backend, step, twin

WIDTH, EXPERTS = 32, 4


class Experts(nn.Module):
    """Each row goes to the two experts that its router likes best."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        likes = self.router(x).softmax(-1)
        best, which = likes.topk(2)
        shares = torch.zeros_like(likes).scatter(1, which, best)
        return x + sum(
            share * nn.functional.gelu(net(x)) for share, net in zip(shares.split(1, 1), self.experts, strict=True)
        )


class Net(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).square().mean()


def test_routing_is_kept_and_the_rest_computed_again() -> None:
    torch.manual_seed(0)
    module, x = Net(*(Experts() for _ in range(3))), torch.randn(256, WIDTH)
    other, asked = twin(module), backend("45%", 30_000)
    run = torch.compile(module, backend=asked, dynamic=False)
    assert step(module, run, (x,)).same_bits(step(other, other, (x,)))
    (plan,) = asked.plans
    assert plan.found is not None, plan.why
    assert plan.lowered is not None
    times = [(op, plan.found.order.count(place)) for place, op in enumerate(plan.lowered.ops) if op is not None]
    routed = [count for op, count in times if op.target is torch.ops.aten.topk.default]
    assert routed == [1] * 3
    assert sum(count > 1 for _, count in times) > 10
