"""Higher-order ops: what their bodies hold is foretold, and regions are planned as the ops that they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan

from tests.sampling import few
from tests.torch.allocator import allocated
from tests.torch.steps import backend, step, twin

WIDTH = 32
FEW_BYTES = 64  # numbers that kernels work with
Body = Callable[[torch.Tensor], torch.Tensor]


def chosen(x: torch.Tensor) -> torch.Tensor:
    def wide(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x, x, x], -1).sin().exp().unflatten(-1, (4, WIDTH)).sum(-2)

    return torch.cond(x.square().sum() > 0, wide, torch.cos, (x,))


def scanned(x: torch.Tensor) -> torch.Tensor:
    def one(carry: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return 0.9 * carry + row.tanh(), (carry * row).sin().exp()

    last, every = scan(one, torch.zeros(x.shape[1], WIDTH), x)
    return every + last


def by_rows(x: torch.Tensor) -> torch.Tensor:
    return mapped(lambda row: torch.cat([row, row.sin()], -1).exp().square(), x)[..., :WIDTH]


def looped(x: torch.Tensor) -> torch.Tensor:
    def one(count: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return count + 1, y * 1.5 + y.sin().cos()

    with torch.no_grad():
        start = torch.zeros((), dtype=torch.long)
        _, y = torch.while_loop(lambda count, y: (count < 5) & (y.norm() < 1e9), one, (start, x.detach()))
    return x * y


@torch.compiler.nested_compile_region
def one(x: torch.Tensor) -> torch.Tensor:
    return x + x.exp().sin().cos()


def region(x: torch.Tensor) -> torch.Tensor:
    return one(one(one(x)))


class Holding(nn.Module):
    def __init__(self, body: Body) -> None:
        super().__init__()
        self.first, self.last, self.body = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.body(self.first(x))).square().mean()


@pytest.mark.parametrize("body", few([chosen, scanned, by_rows, looped, region], 2))
def test_what_bodies_hold_is_foretold(body: Body) -> None:
    torch.manual_seed(0)
    module, x = Holding(body), torch.randn(16, 8, WIDTH)
    other, asked = twin(module), backend("100%")
    run = torch.compile(module, backend=asked, dynamic=False)
    assert step(module, run, (x,)).same_bits(step(other, other, (x,)))
    (plan,) = asked.plans
    assert plan.lowered is not None, plan.why
    assert plan.found is not None
    assert asked.step.meter.peak == plan.found.outcome.peak
    seen = plan.lowered.problem.resident + step_of(module, run, x)
    assert 0 <= seen - plan.found.outcome.peak <= FEW_BYTES


def step_of(module: nn.Module, run: Callable[..., torch.Tensor], x: torch.Tensor) -> int:
    """The most bytes that torch's allocator gave out in one step."""
    module.zero_grad(set_to_none=True)
    return allocated(lambda: run(x).backward())


def test_a_region_is_planned_with_all_else() -> None:
    torch.manual_seed(0)
    module, x = Holding(region), torch.randn(16, 8, WIDTH)
    other, asked = twin(module), backend("85%", 5_000)
    run = torch.compile(module, backend=asked, dynamic=False)
    assert step(module, run, (x,)).same_bits(step(other, other, (x,)))
    (plan,) = asked.plans
    assert plan.found is not None, plan.why
    assert plan.found.fits
    assert asked.step.meter.peak == plan.found.outcome.peak < plan.found.before.peak
