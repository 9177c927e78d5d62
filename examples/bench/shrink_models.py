"""Models that are only run, in the shapes of well-known ones, for `shrink.py`.

    python examples/bench/shrink_models.py FOLDER [NAME ...]

Weights are random, by the seed 0. It needs torch, onnxscript, and for some transformers or diffusers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from shrink_more_models import BiRefNet, Lama
from torch import Tensor, cat, nn
from torch.nn import functional

OPSET = 18


def conv(i: int, o: int, k: int = 3, stride: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(i, o, k, stride, dilation * (k // 2), dilation)


def resized(x: Tensor, like: Tensor) -> Tensor:
    return functional.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=False)


class Dense(nn.Module):
    """Of ESRGAN: five convolutions, each of which reads all before it."""

    def __init__(self, width: int = 64, more: int = 32) -> None:
        super().__init__()
        self.convs = nn.ModuleList(conv(width + i * more, more if i < 4 else width) for i in range(5))

    def forward(self, x: Tensor) -> Tensor:
        every = [x]
        for one in self.convs[:4]:
            every.append(functional.leaky_relu(one(cat(every, 1)), 0.2))
        return self.convs[4](cat(every, 1)) * 0.2 + x


class Residual(nn.Module):
    def __init__(self, *inside: nn.Module, scale: float = 1.0) -> None:
        super().__init__()
        self.inside, self.scale = nn.Sequential(*inside), scale

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x) * self.scale + x


class Larger(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=2, mode="nearest")


def esrgan(blocks: int = 6, width: int = 64) -> nn.Module:
    body = [Residual(*(Dense(width) for _ in range(3)), scale=0.2) for _ in range(blocks)]
    up = [part for _ in range(2) for part in (Larger(), conv(width, width), nn.LeakyReLU(0.2))]
    trunk = Residual(*body, conv(width, width))
    return nn.Sequential(conv(3, width), trunk, *up, conv(width, width), nn.LeakyReLU(0.2), conv(width, 3))


def srgan(blocks: int = 12, width: int = 32) -> nn.Module:
    def block(*more: nn.Module) -> nn.Module:
        return nn.Sequential(conv(width, width), nn.BatchNorm2d(width), *more)

    body = [Residual(block(nn.PReLU(), block())) for _ in range(blocks)]
    up = [part for _ in range(2) for part in (conv(width, 4 * width), nn.PixelShuffle(2), nn.PReLU())]
    first = nn.Sequential(conv(3, width, 9), nn.PReLU())
    return nn.Sequential(first, Residual(*body, block()), *up, conv(width, 3, 9), nn.Tanh())


class Normed(nn.Sequential):
    def __init__(
        self, i: int, o: int, k: int = 3, stride: int = 1, dilation: int = 1, act: type[nn.Module] = nn.ReLU
    ) -> None:
        super().__init__(conv(i, o, k, stride, dilation), nn.BatchNorm2d(o), act())


class Nested(nn.Module):
    """A U of U2Net: `depth` halvings, or as many dilations where it is flat."""

    def __init__(self, depth: int, i: int, mid: int, o: int, flat: bool = False) -> None:
        super().__init__()
        self.flat, wider = flat, (lambda k: 2**k) if flat else (lambda k: 1)
        self.first = Normed(i, o)
        self.down = nn.ModuleList(Normed(mid if k else o, mid, dilation=wider(k)) for k in range(depth - 1))
        self.mid = Normed(mid, mid, dilation=wider(depth - 1) if flat else 2)
        ups = range(depth - 2, -1, -1)
        self.up = nn.ModuleList(Normed(2 * mid, mid if k else o, dilation=wider(k)) for k in ups)

    def forward(self, x: Tensor) -> Tensor:
        x = held = self.first(x)
        kept: list[Tensor] = []
        for k, one in enumerate(self.down):
            held = one(functional.max_pool2d(held, 2, 2, ceil_mode=True) if k and not self.flat else held)
            kept.append(held)
        held = self.mid(held)
        for one in self.up:
            other = kept.pop()
            held = one(cat((held if self.flat else resized(held, other), other), 1))
        return held + x


class U2Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        flat = [Nested(4, 512, 256, 512, True), Nested(4, 512, 256, 512, True)]
        down = [Nested(7, 3, 32, 64), Nested(6, 64, 32, 128), Nested(5, 128, 64, 256), Nested(4, 256, 128, 512)]
        up = [Nested(4, 1024, 128, 256), Nested(5, 512, 64, 128), Nested(6, 256, 32, 64), Nested(7, 128, 16, 64)]
        self.down = nn.ModuleList([*down, *flat])
        self.up = nn.ModuleList([Nested(4, 1024, 256, 512, True), *up])
        self.sides = nn.ModuleList(conv(width, 1) for width in (512, 512, 256, 128, 64, 64))
        self.last = nn.Conv2d(6, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        held, kept = x, list[Tensor]()
        for k, one in enumerate(self.down):
            held = one(functional.max_pool2d(held, 2, 2, ceil_mode=True) if k else held)
            kept.append(held)
        made = [kept.pop()]
        for one in self.up:
            other = kept.pop()
            made.append(one(cat((resized(made[-1], other), other), 1)))
        return torch.sigmoid(
            self.last(cat([resized(side(one), x) for side, one in zip(self.sides, made, strict=True)], 1))
        )


class Demucs(nn.Module):
    def __init__(self, width: int = 64, depth: int = 6, most: int = 1024) -> None:
        super().__init__()
        self.down, self.up, i = nn.ModuleList(), nn.ModuleList(), 2
        for k in range(depth):
            glu = nn.Conv1d(width, 2 * width, 1), nn.GLU(1)
            self.down.append(nn.Sequential(nn.Conv1d(i, width, 8, 4), nn.ReLU(), *glu))
            back = nn.ConvTranspose1d(width, i if k else 8, 8, 4)
            wide = nn.Conv1d(width, 2 * width, 3, 1, 1), nn.GLU(1)
            self.up.insert(0, nn.Sequential(*wide, back, *([nn.ReLU()] if k else [])))
            i, width = width, min(most, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for one in self.down:
            x = one(x)
            kept.append(x)
        for one in self.up:
            other = kept.pop()
            length = min(x.shape[-1], other.shape[-1])
            x = one(x[..., :length] + other[..., :length])
        return x


class C2f(nn.Module):
    """Of YOLOv8."""

    def __init__(self, i: int, o: int, blocks: int, added: bool) -> None:
        super().__init__()
        half = o // 2
        inside = [nn.Sequential(silu(half, half), silu(half, half)) for _ in range(blocks)]
        self.first, self.last = silu(i, o, 1), silu((2 + blocks) * half, o, 1)
        self.inside = nn.ModuleList(Residual(one) if added else one for one in inside)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for one in self.inside:
            parts.append(one(parts[-1]))
        return self.last(cat(parts, 1))


def silu(i: int, o: int, k: int = 3, stride: int = 1) -> nn.Module:
    return Normed(i, o, k, stride, act=nn.SiLU)


class Pools(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = silu(width, width // 2, 1), silu(2 * width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(cat(parts, 1))


class Yolo(nn.Module):
    def __init__(self, w: int = 32) -> None:
        super().__init__()
        a, b, c, d = 2 * w, 4 * w, 8 * w, 16 * w
        first = silu(3, w, 3, 2), silu(w, a, 3, 2), C2f(a, a, 1, True), silu(a, b, 3, 2), C2f(b, b, 2, True)
        self.fine = nn.Sequential(*first)
        self.mid = nn.Sequential(silu(b, c, 3, 2), C2f(c, c, 2, True))
        self.coarse = nn.Sequential(silu(c, d, 3, 2), C2f(d, d, 1, True), Pools(d))
        self.join = nn.ModuleList(C2f(i, o, 1, False) for i, o in ((d + c, c), (c + b, b), (b + c, c), (c + d, d)))
        self.down = nn.ModuleList((silu(b, b, 3, 2), silu(c, c, 3, 2)))
        self.boxes = nn.ModuleList(nn.Sequential(silu(i, 64), silu(64, 64), nn.Conv2d(64, 64, 1)) for i in (b, c, d))
        self.kinds = nn.ModuleList(nn.Sequential(silu(i, b), silu(b, b), nn.Conv2d(b, 80, 1)) for i in (b, c, d))
        self.larger = Larger()

    def forward(self, x: Tensor) -> Tensor:
        fine = self.fine(x)
        mid = self.mid(fine)
        coarse = self.coarse(mid)
        half = self.join[0](cat((self.larger(coarse), mid), 1))
        one = self.join[1](cat((self.larger(half), fine), 1))
        two = self.join[2](cat((self.down[0](one), half), 1))
        three = self.join[3](cat((self.down[1](two), coarse), 1))
        heads = zip(self.boxes, self.kinds, (one, two, three), strict=True)
        boxes, kinds = cat([cat((box(y), kind(y)), 1).flatten(2) for box, kind, y in heads], 2).split((64, 80), 1)
        spread = boxes.view(boxes.shape[0], 4, 16, -1).transpose(2, 1).softmax(1)
        return cat(((spread * torch.arange(16.0).view(1, 16, 1, 1)).sum(1), kinds.sigmoid()), 1)


class First(nn.Module):
    """The first output of a module."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x)[0]


def whisper() -> nn.Module:
    from transformers import WhisperConfig, WhisperModel

    wide = {"d_model": 768, "encoder_layers": 12, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072}
    return First(WhisperModel(WhisperConfig(**wide, decoder_layers=1, decoder_attention_heads=12)).encoder)


def sam() -> nn.Module:
    from transformers import SamConfig, SamModel

    return First(SamModel._from_config(SamConfig(), attn_implementation="eager").vision_encoder)


def decoder() -> nn.Module:
    from diffusers import AutoencoderKL

    kinds = {"down_block_types": ["DownEncoderBlock2D"] * 4, "up_block_types": ["UpDecoderBlock2D"] * 4}
    return AutoencoderKL(**kinds, block_out_channels=[128, 256, 512, 512], layers_per_block=2).decoder


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "yolov8s-640": (Yolo, (1, 3, 640, 640)),
    "whisper-small-encoder": (whisper, (1, 80, 3000)),
    "esrgan6-128": (esrgan, (1, 3, 128, 128)),
    "esrgan6-256": (esrgan, (1, 3, 256, 256)),
    "srgan-270x480": (srgan, (1, 3, 270, 480)),
    "srgan-540x960": (srgan, (1, 3, 540, 960)),
    "u2net-512": (U2Net, (1, 3, 512, 512)),
    "u2net-1024": (U2Net, (1, 3, 1024, 1024)),
    "demucs-4s": (Demucs, (1, 2, 171008)),
    "sam-vit-b-1024": (sam, (1, 3, 1024, 1024)),
    "sd-vae-decoder-512": (decoder, (1, 4, 64, 64)),
    "lama-512": (Lama, (1, 4, 512, 512)),
    "birefnet-lite-1024": (BiRefNet, (1, 3, 1024, 1024)),
}


def main(folder: str, *names: str) -> None:
    for name in names or MODELS:
        make, shape = MODELS[name]
        torch.manual_seed(0)
        module = make().eval()
        path = Path(folder) / f"{name}.onnx"
        torch.onnx.export(module, (torch.randn(shape),), path, dynamo=True, external_data=False, opset_version=OPSET)


if __name__ == "__main__":
    main(*sys.argv[1:])
