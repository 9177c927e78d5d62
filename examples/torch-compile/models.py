"""Networks as users write them, small, with random weights; each module returns its loss."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Block(nn.Module):
    """A residual block of ResNet-18, or with a bottleneck of ResNet-50."""

    def __init__(self, width: int, out: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        inner = out // 4 if bottleneck else out
        kernels = [(1, 1), (3, stride), (1, 1)] if bottleneck else [(3, stride), (3, 1)]
        widths = [width, *[inner] * (len(kernels) - 1), out]
        layers: list[nn.Module] = []
        for place, (kernel, step) in enumerate(kernels):
            layers += [nn.Conv2d(widths[place], widths[place + 1], kernel, step, kernel // 2, bias=False)]
            layers += [nn.BatchNorm2d(widths[place + 1]), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers[:-1])
        same = stride == 1 and width == out
        self.way = (
            nn.Identity() if same else nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.way(x))


class ResNet(nn.Module):
    def __init__(self, depths: tuple[int, ...], bottleneck: bool, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, here = [], width
        for level, depth in enumerate(depths):
            out = width * 2**level * (4 if bottleneck else 1)
            for place in range(depth):
                blocks.append(Block(here, out, 2 if level and not place else 1, bottleneck))
                here = out
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(here, 10)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.blocks(self.stem(x)).mean((2, 3))), y)


class Double(nn.Sequential):
    def __init__(self, width: int, out: int) -> None:
        super().__init__(
            nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
        )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, width: int = 16, levels: int = 3) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels + 1)]
        self.down = nn.ModuleList(Double(a, b) for a, b in zip([3, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(widths))
        self.joined = nn.ModuleList(Double(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kept = []
        for place, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if place else x)
            kept.append(x)
        kept.pop()
        for up, block in zip(reversed(self.up), reversed(self.joined), strict=True):
            x = block(torch.cat([kept.pop(), up(x)], 1))
        return F.cross_entropy(self.head(x), y)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.given, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.given(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=self.dropout)
        return self.out(x.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop(self.attention(self.first(x)))
        return x + self.drop(self.mlp(self.second(x)))


class GPT(nn.Module):
    """As GPT-2: embeddings that are tied to the head."""

    def __init__(
        self, layers: int = 2, width: int = 64, words: int = 256, length: int = 64, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, 4, True, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = self.words(x) + self.places(torch.arange(x.shape[1]))
        for layer in self.layers:
            h = layer(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())


class ViT(nn.Module):
    def __init__(self, layers: int = 2, width: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.layers = nn.Sequential(*(Layer(width, 4, False, 0.0) for _ in range(layers)))
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = self.layers(torch.cat([self.token.expand(len(h), -1, -1), h], 1))
        return F.cross_entropy(self.head(h[:, 0]), y)


class Mixing(nn.Module):
    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.places = nn.Sequential(nn.Linear(length, 2 * length), nn.GELU(), nn.Linear(2 * length, length))
        self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.places(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class Mixer(nn.Module):
    def __init__(self, layers: int = 2, width: int = 64, length: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.layers = nn.Sequential(*(Mixing(width, length) for _ in range(layers)))
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.layers(self.patches(x).flatten(2).transpose(1, 2)).mean(1)), y)


class Deep(nn.Module):
    """A block of ConvNeXt."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.spread = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.mlp(self.norm(self.spread(x).permute(0, 2, 3, 1))) * self.scale
        return x + h.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, width: int = 24, depth: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.first = nn.Sequential(*(Deep(width) for _ in range(depth)))
        self.down = nn.Conv2d(width, 2 * width, 2, 2)
        self.second = nn.Sequential(*(Deep(2 * width) for _ in range(depth)))
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.second(self.down(self.first(self.stem(x)))).mean((2, 3))), y)


class Scan(nn.Module):
    """A block like Mamba's: a gate, a short convolution, and a state carried along the sequence."""

    def __init__(self, width: int, state: int = 8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.near = nn.Conv1d(2 * width, 2 * width, 4, padding=3, groups=2 * width)
        self.given = nn.Linear(2 * width, 2 * state + 1)
        self.decay = nn.Parameter(torch.zeros(2 * width, state))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, gate = self.into(self.norm(x)).chunk(2, -1)
        h = F.silu(self.near(h.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        into, out, step = self.given(h).split([self.decay.shape[1], self.decay.shape[1], 1], -1)
        step = F.softplus(step)
        state, found = h.new_zeros(len(x), h.shape[2], self.decay.shape[1]), []
        for place in range(x.shape[1]):
            keep = torch.exp(-step[:, place, :, None] * torch.exp(self.decay))
            state = keep * state + (step[:, place] * h[:, place])[..., None] * into[:, place, None]
            found.append((state * out[:, place, None]).sum(-1))
        return x + self.out(torch.stack(found, 1) * F.silu(gate))


class Mamba(nn.Module):
    def __init__(self, layers: int = 2, width: int = 32, words: int = 64) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.Sequential(*(Scan(width) for _ in range(layers)))
        self.head = nn.Linear(width, words)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.layers(self.words(x))).flatten(0, 1), y.flatten())


def images(batch: int, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))


def words(batch: int, length: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, count, (batch, length)), torch.randint(0, count, (batch, length))


SMALL = {  # for tests
    "gpt": lambda: (GPT(), words(4, 64, 256)),
    "vit": lambda: (ViT(), images(8, 32)),
    "mixer": lambda: (Mixer(), images(8, 32)),
    "resnet18": lambda: (ResNet((2, 2, 2, 2), False, 8), images(8, 64)),
    "resnet50": lambda: (ResNet((3, 4, 6, 3), True, 4), images(4, 64)),
    "unet": lambda: (UNet(8), (torch.randn(2, 3, 64, 64), torch.randint(0, 2, (2, 64, 64)))),
    "convnext": lambda: (ConvNeXt(), images(4, 64)),
    "mamba": lambda: (Mamba(), words(2, 8, 64)),
}

MODELS = {  # of which activations are most of the memory
    "gpt": lambda: (GPT(4, 128, 512, 128), words(4, 128, 512)),
    "vit": lambda: (ViT(4, 128), images(8, 48)),
    "mixer": lambda: (Mixer(4, 128, 64), images(16, 32)),
    "resnet18": lambda: (ResNet((2, 2, 2, 2), False, 16), images(16, 96)),
    "resnet50": lambda: (ResNet((3, 4, 6, 3), True, 8), images(16, 96)),
    "unet": lambda: (UNet(16), (torch.randn(4, 3, 96, 96), torch.randint(0, 2, (4, 96, 96)))),
    "convnext": lambda: (ConvNeXt(32, 3), images(16, 96)),
    "mamba": lambda: (Mamba(2, 64), words(4, 16, 64)),
}
