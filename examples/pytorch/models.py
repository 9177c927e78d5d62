"""Six modules as one writes them: small, with all that exports stumble over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


class Residual(nn.Module):
    """Two convolutions with BatchNorm and a way around them, as in ResNet-18."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.around = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + self.around(x))


class ResNet(nn.Sequential):
    def __init__(self) -> None:
        blocks = [Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2)]
        stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        super().__init__(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Convolutional(nn.Sequential):
    """Plain convolutions, each with BatchNorm, as in VGG-11."""

    def __init__(self) -> None:
        layers: list[nn.Module] = []
        for inside, outside in ((3, 16), (16, 32), (32, 32)):
            layers += [nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(), nn.MaxPool2d(2)]
        super().__init__(*layers, nn.Flatten(), nn.Linear(32 * 16, 10))


class Attention(nn.Module):
    """Keys and values of fewer heads than queries, if so asked; `rotate`: rotary positions."""

    def __init__(self, width: int, heads: int, shared: int, bias: bool, causal: bool, rotate: bool = False) -> None:
        super().__init__()
        self.heads, self.shared, self.size, self.causal, self.rotate = heads, shared, width // heads, causal, rotate
        self.query = nn.Linear(width, width, bias)
        self.key, self.value = (nn.Linear(width, shared * self.size, bias) for _ in range(2))
        self.out = nn.Linear(width, width, bias)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape

        def split(part: Tensor, heads: int) -> Tensor:
            return part.view(batch, length, heads, self.size).transpose(1, 2)

        q, k, v = split(self.query(x), self.heads), split(self.key(x), self.shared), split(self.value(x), self.shared)
        if self.rotate:
            q, k = rotary(q), rotary(k)
        if self.shared < self.heads:
            k, v = (part.repeat_interleave(self.heads // self.shared, 1) for part in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def rotary(x: Tensor) -> Tensor:
    """Each pair of features turned by its position."""
    length, size = x.shape[-2:]
    rates = 10000.0 ** (-torch.arange(0, size, 2, device=x.device) / size)
    angles = torch.outer(torch.arange(length, device=x.device), rates)
    angles = torch.cat((angles, angles), -1)
    low, high = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-high, low), -1) * angles.sin()


class Block(nn.Module):
    """Attention and two layers, each after a LayerNorm, as in GPT-2 and ViT."""

    def __init__(self, width: int, heads: int, causal: bool, dropout: float) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, heads, True, causal)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop1(self.attention(self.ln1(x)))
        return x + self.drop2(self.layers(self.ln2(x)))


class GPT2(nn.Module):
    """The embedding is the head's weight, too."""

    def __init__(self, vocabulary: int = 200, width: int = 48, length: int = 64, layers: int = 3) -> None:
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(vocabulary, width), nn.Embedding(length, width), nn.Dropout(0.1)
        self.blocks = nn.ModuleList(Block(width, 4, True, 0.1) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.05)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.drop(self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class ViT(nn.Module):
    def __init__(self, width: int = 48, image: int = 32, patch: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, 4, False, 0.0) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class GatedBlock(nn.Module):
    """RMSNorm, shared keys and values, rotary positions and SwiGLU, as in Llama."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, 4, 2, False, True, rotate=True)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Sequential):
    def __init__(self, vocabulary: int = 200, width: int = 48) -> None:
        blocks = [GatedBlock(width) for _ in range(3)]
        super().__init__(
            nn.Embedding(vocabulary, width), *blocks, nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        )


def twice(inside: int, outside: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (inside, outside):
        layers += [nn.Conv2d(width, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Logits [batch, class, height, width]."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = twice(3, width), twice(width, 2 * width), twice(2 * width, 4 * width)
        self.up2, self.join2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), twice(4 * width, 2 * width)
        self.up1, self.join1 = nn.ConvTranspose2d(2 * width, width, 2, 2), twice(2 * width, width)
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.down1(x)
        middle = self.down2(functional.max_pool2d(wide, 2))
        low = self.bottom(functional.max_pool2d(middle, 2))
        middle = self.join2(torch.cat((self.up2(low), middle), 1))
        return self.head(self.join1(torch.cat((self.up1(middle), wide), 1)))


@dataclass(frozen=True)
class Example:
    make: Callable[[], nn.Module]
    batch: Callable[[], tuple[Tensor, Tensor]]
    optimizer: str
    rate: float


def images(batch: int, size: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,))


def words(batch: int, length: int) -> tuple[Tensor, Tensor]:
    ids = torch.randint(0, 200, (batch, length + 1))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


EXAMPLES = {
    "cnn": Example(Convolutional, lambda: images(16, 32), "momentum", 0.01),
    "resnet": Example(ResNet, lambda: images(8, 32), "momentum", 1e-3),
    "vit": Example(ViT, lambda: images(16, 32), "adamw", 1e-3),
    "gpt2": Example(GPT2, lambda: words(16, 64), "adamw", 1e-3),
    "llama": Example(Llama, lambda: words(16, 64), "adamw", 1e-3),
    "unet": Example(UNet, lambda: (torch.randn(4, 3, 32, 32), torch.randint(0, 4, (4, 32, 32))), "adam", 1e-3),
}
