"""Write what PyTorch's optimizers do in ten steps, for tests that run without PyTorch.

Needs torch: python examples/pytorch/export_optimizers.py tests/data/torch/optimizers.npz
The module is that of `export_small.py`, in tests/data/torch/language_train_whole.onnx.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from export_small import Language
from torch import Tensor, nn
from torch.nn import functional

STEPS = 10
KEPT = ("wpe.weight", "qkv.weight", "down.weight", "lnf.bias")
OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), 0.1),
    "sgd_decay": lambda m: torch.optim.SGD(m.parameters(), 0.1, weight_decay=0.1),
    "momentum": lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.8),
    "momentum_decay": lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.8, weight_decay=0.1),
    "adam": lambda m: torch.optim.Adam(m.parameters(), 0.01),
    "adam_decay": lambda m: torch.optim.Adam(m.parameters(), 0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "adamw": lambda m: torch.optim.AdamW(m.parameters(), 0.01),
    "adamw_decay": lambda m: torch.optim.AdamW(m.parameters(), 0.01, betas=(0.9, 0.95), weight_decay=0.5),
    "adamw_groups": lambda m: torch.optim.AdamW(grouped(m), 0.01),
    "adamw_clipped": lambda m: torch.optim.AdamW(m.parameters(), 0.01),
    "sgd_clipped": lambda m: torch.optim.SGD(m.parameters(), 0.1),
    "sgd_cosine": lambda m: torch.optim.SGD(m.parameters(), 0.1),
    "sgd_linear": lambda m: torch.optim.SGD(m.parameters(), 0.1),
}
CLIP = 0.5
SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "sgd_cosine": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o,
        [
            torch.optim.lr_scheduler.LinearLR(o, 1 / 3, 1, 2),
            torch.optim.lr_scheduler.CosineAnnealingLR(o, 6),
        ],
        [2],
    ),
    "sgd_linear": lambda o: torch.optim.lr_scheduler.LinearLR(o, 1, 0, 8),
}


def grouped(module: nn.Module) -> list[dict[str, Any]]:
    """No decay and a learning rate of its own for biases and norms, as it is usual."""
    own = [p for name, p in module.named_parameters() if name.endswith("bias") or name.startswith("ln")]
    rest = [p for name, p in module.named_parameters() if not (name.endswith("bias") or name.startswith("ln"))]
    return [{"params": rest, "weight_decay": 0.1}, {"params": own, "weight_decay": 0.0, "lr": 0.03}]


def batches() -> Iterable[tuple[Tensor, Tensor]]:
    random = np.random.default_rng(0)
    for _ in range(STEPS):
        yield tuple(torch.from_numpy(random.integers(0, 12, (2, 6))) for _ in range(2))


def trained(name: str) -> dict[str, np.ndarray]:
    torch.manual_seed(0)
    module = Language().train()
    optimizer = OPTIMIZERS[name](module)
    schedule = SCHEDULES[name](optimizer) if name in SCHEDULES else None
    losses, rates = [], []
    for ids, labels in batches():
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(ids).movedim(2, 1), labels)
        loss.backward()
        if name.endswith("clipped"):
            nn.utils.clip_grad_norm_(module.parameters(), CLIP)
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    weights = {f"{name}.{key}": value.detach().numpy() for key, value in module.named_parameters() if key in KEPT}
    return {f"{name}.losses": np.array(losses), f"{name}.rates": np.array(rates), **weights}


def main() -> None:
    found: dict[str, np.ndarray] = {}
    for name in OPTIMIZERS:
        found |= trained(name)
    np.savez_compressed(sys.argv[1], **found)


if __name__ == "__main__":
    main()
