"""U-Net (Ronneberger et al., 2015), its convolutions padded so that the halves join without cropping."""

from __future__ import annotations

from remat_cli.errors import Usage
from remat_cli.zoo.layers import Images, Net, need_multiple

IMAGES = Images(classes=2)


def unet(net: Net, images: Images = IMAGES, width: int = 64, layers: int = 4, upsample: str = "transposed") -> str:
    """`layers` halvings of the image, `width` channels at full size; logits in NHWC."""
    if upsample not in ("transposed", "nearest", "linear"):
        raise Usage(f"unet upsamples by transposed, nearest or linear, not {upsample}")
    need_multiple(images.image, 1 << layers, "unet")
    x = net.input("input", images.shape)
    skips = []
    for level in range(layers):
        x = _double(net, x, f"down{level}", width << level)
        skips.append(x)
        x = net.max_pool(x, f"down{level}.pool", 2, 2)
    x = net.dropout(_double(net, x, "bottom", width << layers), "bottom.drop")
    for level in reversed(range(layers)):
        x = _up(net, x, f"up{level}", width << level, upsample)
        x = _double(net, net.concat([skips[level], x], f"up{level}.concat"), f"up{level}", width << level)
    return net.classes_last(net.conv_with_bias(x, "head", images.classes, 1), "score")


def _double(net: Net, x: str, name: str, channels: int) -> str:
    x = net.relu(net.conv_with_bias(x, f"{name}.conv1", channels, 3))
    return net.relu(net.conv_with_bias(x, f"{name}.conv2", channels, 3))


def _up(net: Net, x: str, name: str, channels: int, how: str) -> str:
    if how == "transposed":
        return net.conv_transpose(x, f"{name}.transposed", channels, 2, 2, bias=True)
    return net.conv_with_bias(net.upsample(x, f"{name}.resize", how), f"{name}.conv0", channels, 3)
