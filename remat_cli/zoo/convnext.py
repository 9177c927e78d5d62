"""ConvNeXt (Liu et al., 2022)."""

from __future__ import annotations

from remat_cli.zoo.layers import IMAGES, Images, Net

BLOCKS = (3, 3, 27, 3)
EPSILON, STD = 1e-6, 0.02


def convnext(net: Net, images: Images = IMAGES, width: int = 192) -> str:
    """The large one; `width`: channels of the first stage, twice as many in each next."""
    x = _normalized(net, net.conv_with_bias(net.input("input", images.shape), "stem", width, 4, 4, 0), "stem.norm")
    for stage, blocks in enumerate(BLOCKS):
        if stage:
            x = net.conv_with_bias(
                _normalized(net, x, f"down{stage}.norm"), f"down{stage}.conv", width << stage, 2, 2, 0
            )
        for number in range(blocks):
            x = _block(net, x, f"stage{stage}.{number}")
    x = _normalized(net, net.global_average_pool(x, "pool"), "norm")
    return net.linear(net.flatten(x), "classifier", images.classes, std=STD)


def _block(net: Net, x: str, name: str) -> str:
    width = net.shapes[x][1]
    y = net.transpose(net.conv(x, f"{name}.conv", width, 7, groups=width, bias=True), f"{name}.last", [0, 2, 3, 1])
    y = net.dense(net.layer_norm(y, f"{name}.norm", EPSILON), f"{name}.expand", 4 * width, STD)
    y = net.transpose(net.dense(net.gelu(y), f"{name}.project", width, STD), f"{name}.first", [0, 3, 1, 2])
    scale = net.weight(f"{name}.scale", (width, 1, 1), fill=1e-6)
    return net.add(x, net.multiply(y, scale, f"{name}.scaled"), f"{name}.add")


def _normalized(net: Net, x: str, name: str) -> str:
    """A LayerNormalization over the channels of each pixel."""
    y = net.layer_norm(net.transpose(x, f"{name}.last", [0, 2, 3, 1]), name, EPSILON)
    return net.transpose(y, f"{name}.first", [0, 3, 1, 2])
