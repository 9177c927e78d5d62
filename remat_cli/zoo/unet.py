"""U-Net (Ronneberger et al., 2015), its convolutions padded so that the halves join without cropping."""

from __future__ import annotations

from remat_cli.errors import Usage
from remat_cli.zoo.layers import Net, Pair, both, need_multiple


def unet(
    net: Net,
    batch: int = 32,
    image: Pair = 224,
    channels: int = 3,
    classes: int = 2,
    width: int = 64,
    layers: int = 4,
    upsample: str = "transposed",
) -> str:
    """`layers` halvings of the image, `width` channels at full size; logits in NHWC."""
    if upsample not in ("transposed", "nearest", "linear"):
        raise Usage(f"unet upsamples by transposed, nearest or linear, not {upsample}")
    need_multiple(image, 1 << layers, "unet")
    x = net.input("input", (batch, channels, *both(image)))
    skips = []
    for level in range(layers):
        x = _double(net, x, f"down{level}", width << level)
        skips.append(x)
        x = net.max_pool(x, f"down{level}.pool", 2, 2)
    x = net.dropout(_double(net, x, "bottom", width << layers), "bottom.drop")
    for level in reversed(range(layers)):
        x = _up(net, x, f"up{level}", width << level, upsample)
        x = _double(net, net.concat([skips[level], x], f"up{level}.concat"), f"up{level}", width << level)
    return net.classes_last(net.conv(x, "head", classes, 1, bias=True), "score")


def _double(net: Net, x: str, name: str, channels: int) -> str:
    x = net.relu(net.conv(x, f"{name}.conv1", channels, 3, bias=True))
    return net.relu(net.conv(x, f"{name}.conv2", channels, 3, bias=True))


def _up(net: Net, x: str, name: str, channels: int, how: str) -> str:
    if how == "transposed":
        return net.conv_transpose(x, f"{name}.transposed", channels, 2, 2, 0, bias=True)
    return net.conv(net.upsample(x, f"{name}.resize", how), f"{name}.conv0", channels, 3, bias=True)
