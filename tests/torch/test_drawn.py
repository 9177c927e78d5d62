"""What draws random numbers, wherever it stands: a step under a budget has eager's loss, gradients and next numbers.

Bits of eager are the witness: a mask that was drawn again would be another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tests.sampling import few
from tests.torch.steps import backend, step, twin

WIDTH = 32


class Scaled(torch.autograd.Function):
    """A mask of its own, kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        mask = (torch.rand_like(x) > 0.3).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient * ctx.saved_tensors[0]


class Noisy(torch.autograd.Function):
    """What is drawn in the backward pass alone."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x * 1.0

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient * (torch.rand_like(gradient) > 0.5)


def attention(m: Net, x: Tensor, **how: Any) -> Tensor:
    q, k, v = (one.unflatten(2, (4, -1)).transpose(1, 2) for one in (x, m.one(x), m.two(x)))
    return functional.scaled_dot_product_attention(q, k, v, dropout_p=0.3, **how).transpose(1, 2).flatten(2)


def by_path(m: Net, x: Tensor) -> Tensor:
    """As timm and torchvision leave out a whole branch of some samples."""
    return x + m.one(x) * x.new_empty((x.shape[0], 1, 1)).bernoulli_(0.6).div_(0.6)


def twice(m: Net, x: Tensor) -> Tensor:
    return m.drop(x) + m.drop(torch.sin(x))


def in_pictures(drop: Callable[..., Tensor]) -> Callable[[Net, Tensor], Tensor]:
    return lambda _, x: drop(x.unflatten(2, (4, -1)), 0.3, training=True).flatten(2)


def checkpointed(m: Net, x: Tensor) -> Tensor:
    return checkpoint(lambda y: functional.dropout(functional.gelu(m.one(y)), 0.3), x, use_reentrant=False)


def beside_a_branch(_: Net, x: Tensor) -> Tensor:
    found: Tensor = torch.cond(x.sum() > 0, lambda y: y * 1.5, lambda y: y.sin(), (x,))
    return found * functional.dropout(torch.ones_like(x), 0.3)


def in_a_branch(_: Net, x: Tensor) -> Tensor:
    found: Tensor = torch.cond(x.sum() > 0, lambda y: functional.dropout(y, 0.3), lambda y: y.sin(), (x,))
    return found


WAYS: dict[str, Callable[[Net, Tensor], Tensor]] = {
    "attention": attention,
    "causal attention": lambda m, x: attention(m, x, is_causal=True),
    "function": lambda _, x: functional.dropout(x, 0.3),
    "in place": lambda _, x: functional.dropout(x * 1.5, 0.3, inplace=True),
    "one module twice": twice,
    "two in a row": lambda _, x: functional.dropout(functional.dropout(x, 0.2), 0.2),
    "of a weight": lambda m, x: functional.linear(x, functional.dropout(m.one.weight, 0.3)),
    "a mask for two": lambda m, x: (mask := functional.dropout(torch.ones_like(x), 0.3)) * x + m.one(x) * mask,
    "of channels": in_pictures(functional.dropout2d),
    "alpha": lambda _, x: functional.alpha_dropout(x, 0.3, training=True),
    "alpha of channels": in_pictures(functional.feature_alpha_dropout),
    "rrelu": lambda _, x: functional.rrelu(x, 0.1, 0.4, training=True),
    "a path": by_path,
    "gumbel": lambda _, x: functional.gumbel_softmax(x, 0.7),
    "hard gumbel": lambda _, x: x * functional.gumbel_softmax(x, 0.7, hard=True),
    "bernoulli": lambda _, x: x * torch.bernoulli(torch.sigmoid(x).detach()),
    "compared": lambda _, x: x.masked_fill(torch.rand(x.shape) < 0.3, 0.0),
    "an order": lambda _, x: x[:, torch.randperm(x.shape[1])],
    "multinomial": lambda _, x: x + x[:, torch.multinomial(torch.ones(x.shape[1]), 4)].mean(1, keepdim=True),
    "exponential": lambda _, x: x * torch.empty_like(x).exponential_(1.0),
    "normal": lambda m, x: torch.distributions.Normal(x, torch.sigmoid(m.one(x))).rsample(),
    "gamma": lambda _, x: torch.distributions.Gamma(torch.sigmoid(x) + 1, torch.ones_like(x)).rsample(),
    "checkpointed": checkpointed,
    "a function's own": lambda _, x: Scaled.apply(x),
    "a function's backward": lambda _, x: Noisy.apply(x),
    "beside a branch": beside_a_branch,
    "in a branch": in_a_branch,
}


class Net(nn.Module):
    """Three rounds of the way, among ops that are worth computing again."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.one, self.two, self.three = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.drop, self.way = nn.Dropout(0.2), WAYS[way]

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = functional.gelu(self.two(self.way(self, functional.gelu(self.one(x)))))
            x = x + self.three(torch.tanh(x))
        return x.square().mean()


@pytest.mark.parametrize("way", few(WAYS, 4))
def test_what_was_drawn_forward_is_used_backward(way: str) -> None:
    torch.manual_seed(0)
    module, x = Net(way), torch.randn(6, 10, WIDTH)
    other = twin(module)
    expected = step(other, other, (x,))
    for budget in ("60%", "40%"):
        torch._dynamo.reset()
        asked = backend(budget, 20_000)
        run = torch.compile(module, backend=asked, dynamic=False)
        assert step(module, run, (x,)) == expected
        (plan,) = asked.plans
        assert plan.found is not None, plan.why
        assert len(plan.found.order) > len(set(plan.found.order))  # something is computed again
