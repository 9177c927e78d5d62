"""Blocks under `torch.utils.checkpoint`: planned like all else, or computed again as they ask."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

import remat_cli.torch as remat_torch
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.estimates import estimates
from remat_cli.torch.partition import Partitioner
from remat_cli.units import show_bytes
from solvers.clock import limited
from tests.torch.steps import backend, measured, step, twin
from tests.torch.test_users_modules import trained
from tests.torch.users_modules import CASES

GIVEN = (allowance_of("100%"), estimates("cpu"), limited)
TAGGED = sorted(name for name in CASES if "checkpoint" in name)


@pytest.mark.parametrize("budget", ["100%", "80%"])
@pytest.mark.parametrize("name", TAGGED)
def test_kept_blocks_train_as_in_eager(name: str, budget: str) -> None:
    torch.manual_seed(0)
    module, calls = CASES[name]()
    asked = backend(budget, 20_000)
    asked.partitioner.checkpoints = "keep"
    own = trained(calls, torch.compile(kept := twin(module), backend=asked, dynamic=False), kept)
    assert all(plan.found is not None for plan in asked.plans)
    assert own == trained(calls, other := twin(module), other)


class Net(nn.Module):
    """Four blocks, of which the first few are under a checkpoint."""

    def __init__(self, tagged: int) -> None:
        super().__init__()
        self.tagged = tagged
        blocks = [nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32), nn.Tanh()) for _ in range(4)]
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for place, block in enumerate(self.blocks):
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if place < self.tagged else block(x)
        return x.square().mean()


def planned(checkpoints: str, budget: str = "100%", tagged: int = 4) -> tuple[Any, int]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, x = Net(tagged), torch.randn(256, 32)
    asked = backend(budget)
    asked.partitioner.checkpoints = checkpoints
    run = torch.compile(module, backend=asked, dynamic=False)
    assert step(module, run, (x,)).same_bits(step(other := twin(module), other, (x,)))
    (plan,) = asked.plans
    assert measured(asked, module, run, (x,)) == plan.found.outcome.peak
    return plan, plan.found.outcome.peak


def test_a_kept_block_is_computed_again_and_holds_less() -> None:
    lifted, most = planned("lift", "1GB")
    kept, less = planned("keep")
    assert less < 0.7 * most
    assert max(Counter(lifted.lowered.ops).values()) == 1
    twice = Counter(op.name.split("_")[0] for op, count in Counter(kept.lowered.ops).items() if op and count == 2)
    assert twice["gelu"] == 4
    assert twice["tanh"] == 1  # the last one's: what one block hands to the next is saved


def test_a_kept_block_can_be_planned_below_that() -> None:
    _, whole = planned("keep", tagged=2)
    plan, peak = planned("keep", "80%", tagged=2)
    assert plan.found.fits
    assert peak <= 0.8 * whole


def test_a_share_is_of_the_step_as_written() -> None:
    _, kept = planned("keep")
    plan, peak = planned("lift", "100%")
    assert peak <= kept
    assert plan.found.budget == kept
    assert plan.found.before.peak > kept
    (said,) = remat_torch.report(Partitioner(*GIVEN, plans=[plan])).graphs
    assert said.written == kept
    assert f"as written {show_bytes(kept)}" in str(said)


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match="checkpoints is 'lift' or 'keep', not 'hold'"):
        remat_torch.backend("50%", checkpoints="hold")  # type: ignore[arg-type]


def test_a_view_of_what_is_there_twice_takes_no_memory() -> None:
    """Of two equal ops one stays, and what is known of a view may be of the other."""
    torch.manual_seed(0)
    layer, asked = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True), backend("100%")

    def run(q: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return layer(layer(q, x, x, need_weights=False)[0], x, x, need_weights=False)[0].square().mean()

    torch.compile(run, backend=asked, dynamic=False)(torch.randn(2, 4, 16), torch.randn(2, 6, 16)).backward()
    (plan,) = asked.plans
    assert plan.lowered is not None, plan.why
    assert not [op.name for op in plan.lowered.joint.ops if getattr(op.target, "is_view", False)]


def test_statistics_of_a_norm_under_autocast_are_counted_as_they_are_kept() -> None:
    torch.manual_seed(0)
    module, x, asked = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64)), torch.randn(16, 32), backend("100%")

    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = module(x)
        return y.float().square().mean()

    torch.compile(run, backend=asked, dynamic=False)(x).backward()
    (plan,) = asked.plans
    assert asked.step.meter.peak == plan.found.outcome.peak
