"""Write small models as PyTorch exports them, and autograd's gradients, for tests that run without PyTorch.

Needs torch and onnxscript: python examples/pytorch/export_small.py tests/data/torch
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

PLACES = "pkg.torch.onnx.stack_trace"  # metadata that names files of the machine: left out


class Conv(nn.Module):
    """Convolutions with BatchNorm, as in torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 6, 3, stride=2), nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.fc(functional.relu(self.bn2(self.conv2(x))).mean((2, 3)))


class Language(nn.Module):
    """One block of a GPT, the embedding tied to the head."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(12, 8), nn.Embedding(6, 8)
        self.ln1, self.ln2, self.lnf = nn.LayerNorm(8), nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(8, 12, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        batch, length = ids.shape
        x = self.drop(self.wte(ids) + self.wpe(torch.arange(length)))
        q, k, v = self.qkv(self.ln1(x)).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.proj(mixed.transpose(1, 2).reshape(batch, length, 8)))
        x = x + self.drop(self.down(functional.gelu(self.up(self.ln2(x)))))
        return self.head(self.lnf(x))


class Vanishing(nn.Module):
    """Parameters that begin where they change nothing, or feed what can be known ahead: an optimizer drops them."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.scale, self.shift = nn.Linear(4, 4), nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))
        self.decay, self.out = nn.Parameter(torch.randn(4)), nn.Linear(4, 3)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.out((self.fc(x) * self.scale + self.shift) * -torch.exp(self.decay))


class Clones(nn.Module):
    """Layers that begin as copies of one, as in nn.TransformerEncoder."""

    def __init__(self) -> None:
        super().__init__()
        first = nn.Linear(4, 4)
        self.layers = nn.ModuleList([first, nn.Linear(4, 4)])
        self.layers[1].load_state_dict(first.state_dict())

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x[None])[0])
        return x


class Encoder(nn.Module):
    """PyTorch's own layer, which drops in four places: of its attention's weights too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.fc = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.2, batch_first=True), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.layer(x).mean(1))


class Depth(nn.Module):
    """Stochastic depth: noise of a size that is known before the graph runs."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.fc = nn.Linear(16, 16), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.rand(x.shape[0], 1, 1).add(0.7).floor()
        return self.fc((x + self.block(x) * kept / 0.7).mean(1))


RANDOM = {"encoder": Encoder, "depth": Depth}  # no two steps of theirs give one loss
DRAWS = 4000
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], int]] = {
    "conv": (Conv, lambda: torch.randn(4, 3, 8, 8), 1),
    "language": (Language, lambda: torch.randint(0, 12, (2, 6)), 2),
    "vanishing": (Vanishing, lambda: torch.randn(2, 4), 1),
    "clones": (Clones, lambda: torch.randn(2, 4), 1),
}
WAYS: dict[str, dict[str, Any]] = {
    "default": {"dynamo": True},
    "whole": {"dynamo": True, "optimize": False},
    "traced": {"dynamo": False},
    "traced_whole": {"dynamo": False, "do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE},
}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, example, axis) in MODELS.items():
        for mode in ("train", "eval"):
            torch.manual_seed(0)
            module, x = make().train(mode == "train"), example()
            for way, settings in WAYS.items():
                _export(module, x, folder / f"{name}_{mode}_{way}.onnx", settings)
            np.savez_compressed(folder / f"{name}_{mode}.npz", **_witness(module, x, axis))
    torch.manual_seed(0)
    _export(Language(0.1).train(), MODELS["language"][1](), folder / "language_dropout.onnx", WAYS["whole"])
    for name, make in RANDOM.items():
        torch.manual_seed(0)
        module, x, labels = make().train(), torch.randn(4, 8, 16), torch.randint(0, 5, (4,))
        for way in ("whole", "traced_whole"):
            _export(module, x, folder / f"{name}_random_{way}.onnx", WAYS[way])
        losses = [float(functional.cross_entropy(module(x), labels).detach()) for _ in range(DRAWS)]
        np.savez_compressed(folder / f"{name}_random.npz", x=x.numpy(), labels=labels.numpy(), losses=np.array(losses))


def _export(module: nn.Module, x: Tensor, path: Path, settings: dict[str, Any]) -> None:
    extra = {"external_data": False, "verbose": False} if settings["dynamo"] else {}
    torch.onnx.export(module, (x,), str(path), input_names=["x"], **settings, **extra)
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key != PLACES]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    onnx.save(model, path)


def _witness(module: nn.Module, x: Tensor, axis: int) -> dict[str, np.ndarray]:
    """The data, the loss, autograd's gradients, and the running statistics after the step."""
    before = {f"before.{name}": value.detach().clone().numpy() for name, value in module.state_dict().items()}
    logits = module(x)
    labels = torch.randint(0, logits.shape[axis], [s for place, s in enumerate(logits.shape) if place != axis])
    loss = functional.cross_entropy(logits.movedim(axis, 1), labels)
    loss.backward()
    gradients = {
        f"grad.{name}": value.grad.numpy() for name, value in module.named_parameters() if value.grad is not None
    }
    after = {f"after.{name}": value.numpy() for name, value in module.named_buffers()}
    data = {"x": x.numpy(), "labels": labels.numpy(), "loss": loss.detach().numpy()}
    return data | before | gradients | after


if __name__ == "__main__":
    main()
