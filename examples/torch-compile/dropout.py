"""Dropout under a memory budget: does the backward pass drop what the forward pass dropped?

Usage: python examples/torch-compile/dropout.py   (three minutes on a CPU)

Of y = drop(x) * w the gradient of w is zero where y is zero, and nowhere else. A partition that draws again in the
backward pass has its zeros elsewhere. Each row says at which share of the places the two disagree: under torch's own
knob, `activation_memory_budget`, and under remat's backend.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._functorch import config
from torch.nn import functional as F  # noqa: N812

import remat_cli.torch

WAYS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout1d": lambda x: F.dropout1d(x, 0.3),
    "rand_like": lambda x: x * (torch.rand_like(x) > 0.3),
    "bernoulli": lambda x: x * torch.bernoulli(torch.full_like(x, 0.7)),
    "randn_like": lambda x: x * (torch.randn_like(x) > -0.5),
}
KNOBS = (1.0, 0.5, 0.2, 0.0)
BUDGETS = ("60%", "40%")


def differ(draw: Callable[[torch.Tensor], torch.Tensor], backend: Any, knob: float = 1.0) -> float:
    """The share of places at which the output and the gradient disagree about what was dropped."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    given = torch.randn(64, 512).exp().requires_grad_()
    weights = [torch.ones(64, 512, requires_grad=True) for _ in range(3)]

    def run(x: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        made = []
        for weight in weights:
            made.append(draw(x.cos().exp()) * weight)
            x = made[-1].tanh() + x
        return [*made, x.sum()]

    with config.patch(activation_memory_budget=knob):
        *made, loss = torch.compile(run, backend=backend)(given, *weights)
        loss.backward()
    wrong = sum(int(((y == 0) != (weight.grad == 0)).sum()) for y, weight in zip(made, weights, strict=True))
    return wrong / sum(y.numel() for y in made)


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}: {', '.join(WAYS)}")
    for knob in KNOBS:
        print(f"torch {knob:g}: " + ", ".join(f"{differ(draw, 'aot_eager', knob):.1%}" for draw in WAYS.values()))
    for budget in BUDGETS:
        found = [differ(draw, remat_cli.torch.backend(budget=budget)) for draw in WAYS.values()]
        print(f"remat {budget}: " + ", ".join(f"{share:.1%}" for share in found))


if __name__ == "__main__":
    main()
