"""By construction no plan is worse than torch's own partitions under the same costs."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

from remat_cli.torch import joint as joints
from remat_cli.torch.estimates import estimates
from remat_cli.torch.lowering import lower
from remat_cli.torch.planning import find
from remat_cli.torch.seeds import seeds
from solvers.clock import limited
from solvers.schedule import evaluate
from tests.torch.capturing import captured


class Drawn(nn.Module):
    """Layers drawn at random, some of which are jumped over."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        kinds = [nn.Tanh, nn.GELU, lambda: nn.LayerNorm(16), lambda: nn.Linear(16, 16), lambda: nn.Softmax(-1)]
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), *(draw.choice(kinds)() for _ in range(draw.randint(1, 2))))
            for _ in range(2)
        )
        self.jumps = [draw.random() < 0.5 for _ in self.layers]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = x
        for layer, jump in zip(self.layers, self.jumps, strict=True):
            x = layer(x) + first if jump else layer(x)
        return x.square().mean()


@pytest.mark.parametrize("seed", range(2))
def test_no_plan_is_worse_than_torchs_own(seed: int) -> None:
    torch.manual_seed(seed)
    module, inputs, count = captured(Drawn(seed), (torch.randn(64, 16),))
    lowered = lower(joints.read(module, count), estimates("cpu"))
    own = {order: evaluate(lowered.problem, order)[1] for order in seeds(lowered, module, inputs, limited(1e6, None))}
    assert len(own) > 1
    for outcome in own.values():
        # hardly a search: what holds is held by construction
        found = find(lowered.problem, outcome.peak, limited(1, 1), lambda: own)
        assert found.fits
        assert found.outcome.cost <= outcome.cost
