"""More models in the shapes of well-known ones, for `shrink_models.py`: a LaMa, which works on spectra, and a BiRefNet,
which has windows of attention below and deformable convolutions above."""

from __future__ import annotations

import torch
from torch import Tensor, cat, nn
from torch.nn import functional


def normed(i: int, o: int, k: int = 3, stride: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(i, o, k, stride, k // 2), nn.BatchNorm2d(o), nn.ReLU())


class Spectral(nn.Module):
    """Of LaMa: a convolution of an image's spectrum."""

    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.first, self.last = normed(i, o // 2, 1), nn.Conv2d(o // 2, o, 1)
        self.inside = normed(o, o, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        spectrum = torch.view_as_real(torch.fft.rfftn(x, dim=(-2, -1), norm="ortho"))
        parts = spectrum.permute(0, 1, 4, 2, 3).flatten(1, 2)
        real, imaginary = self.inside(parts).unflatten(1, (-1, 2)).unbind(2)
        back = torch.fft.irfftn(torch.complex(real, imaginary), s=x.shape[-2:], dim=(-2, -1), norm="ortho")
        return self.last(x + back)


class Fourier(nn.Module):
    """Of LaMa: near and far channels, each made of both."""

    def __init__(self, near: int, far: int) -> None:
        super().__init__()
        self.near, self.far = nn.Conv2d(near + far, near, 3, 1, 1), nn.Conv2d(near, far, 3, 1, 1)
        self.spectral = Spectral(far, far)
        self.norms = nn.ModuleList((nn.BatchNorm2d(near), nn.BatchNorm2d(far)))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        near, far = self.near(cat((x, y), 1)), self.far(x) + self.spectral(y)
        return torch.relu(self.norms[0](near)), torch.relu(self.norms[1](far))


class Lama(nn.Module):
    def __init__(self, width: int = 64, blocks: int = 9) -> None:
        super().__init__()
        down = [normed(width << k, width << (k + 1), 3, 2) for k in range(3)]
        self.first = nn.Sequential(normed(4, width, 7), *down)
        wide = 8 * width
        self.near, far = wide // 4, wide - wide // 4
        self.blocks = nn.ModuleList(nn.ModuleList(Fourier(self.near, far) for _ in range(2)) for _ in range(blocks))
        up = [
            nn.Sequential(
                nn.ConvTranspose2d(wide >> k, wide >> (k + 1), 3, 2, 1, 1), nn.BatchNorm2d(wide >> (k + 1)), nn.ReLU()
            )
            for k in range(3)
        ]
        self.last = nn.Sequential(*up, nn.Conv2d(width, 3, 7, 1, 3), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        held = self.first(x)
        near, far = held[:, : self.near], held[:, self.near :]
        for one, other in self.blocks:
            a, b = other(*one(near, far))
            near, far = near + a, far + b
        return self.last(cat((near, far), 1))


class Deformed(nn.Module):
    """A convolution whose window's places are moved and weighted by what was read, as exports of it write it down."""

    def __init__(self, i: int, o: int, k: int) -> None:
        super().__init__()
        self.k, taps = k, k * k
        self.moves, self.weights = nn.Conv2d(i, 2 * taps, k, 1, k // 2), nn.Conv2d(i, taps, k, 1, k // 2)
        self.taps = nn.ModuleList(nn.Conv2d(i, o, 1, bias=not place) for place in range(taps))

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        moves, weights = self.moves(x), 2 * torch.sigmoid(self.weights(x))
        rows, columns = torch.meshgrid(torch.arange(float(height)), torch.arange(float(width)), indexing="ij")
        found: Tensor | None = None
        for place, tap in enumerate(self.taps):
            row, column = place // self.k - self.k // 2, place % self.k - self.k // 2
            down, along = rows + row + moves[:, 2 * place], columns + column + moves[:, 2 * place + 1]
            grid = torch.stack((2 * along / (width - 1) - 1, 2 * down / (height - 1) - 1), -1)
            made = tap(functional.grid_sample(x, grid, align_corners=True) * weights[:, place : place + 1])
            found = made if found is None else found + made
        assert found is not None
        return found


class Decoding(nn.Module):
    """Of BiRefNet: two convolutions, with several windows between them."""

    def __init__(self, i: int, o: int, mid: int = 64) -> None:
        super().__init__()
        self.first, self.last = normed(i, mid), normed(mid, o)
        self.parts = nn.ModuleList(nn.Sequential(Deformed(mid, mid, k), nn.BatchNorm2d(mid), nn.ReLU()) for k in (1, 3))
        self.whole, self.join = normed(mid, mid, 1), normed(4 * mid, mid, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        mean = self.whole(x.mean((-2, -1), keepdim=True)).expand(x.shape)
        return self.last(self.join(cat((x, *(part(x) for part in self.parts), mean), 1)))


class BiRefNet(nn.Module):
    """The lighter one, on a Swin-T."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import SwinBackbone, SwinConfig

        stages = [f"stage{k}" for k in range(1, 5)]
        config = SwinConfig(image_size=1024, depths=[2, 2, 6, 2], out_features=stages)
        self.below = SwinBackbone._from_config(config, attn_implementation="eager")
        wide = [2 * 96 << k for k in range(4)]
        self.squeeze = Decoding(wide[3], wide[3])
        self.decode = nn.ModuleList(Decoding(wide[k], wide[max(k - 1, 0)] // (1 if k else 2)) for k in (3, 2, 1, 0))
        self.beside = nn.ModuleList(nn.Conv2d(wide[k], wide[k], 1) for k in (2, 1, 0))
        self.last = nn.Conv2d(wide[0] // 2 + 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        half = functional.interpolate(x, scale_factor=0.5, mode="bilinear", align_corners=True)
        large, small = (self.below(one).feature_maps for one in (x, half))
        maps = [cat((one, resized(other, one)), 1) for one, other in zip(large, small, strict=True)]
        held = self.decode[0](self.squeeze(maps[3]))
        for decode, beside, other in zip(self.decode[1:], self.beside, maps[2::-1], strict=True):
            held = decode(resized(held, other) + beside(other))
        return torch.sigmoid(self.last(cat((resized(held, x), x), 1)))


def resized(x: Tensor, like: Tensor) -> Tensor:
    return functional.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=True)
