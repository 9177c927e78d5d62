"""EfficientNet b0 to b7 (Tan and Le, 2019), without stochastic depth."""

from __future__ import annotations

import math
from dataclasses import dataclass

from remat_cli.zoo.layers import Net, Pair, as_pair


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A block that widens by `expansion`, filters with a kernel, and narrows to `channels`."""

    expansion: int
    kernel: int
    stride: int
    channels: int


# expansion, kernel, first stride, output channels, repeats
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
# width and depth multipliers, and the image size each was trained on
SCALES = (
    (1.0, 1.0, 224),
    (1.0, 1.1, 240),
    (1.1, 1.2, 260),
    (1.2, 1.4, 300),
    (1.4, 1.8, 380),
    (1.6, 2.2, 456),
    (1.8, 2.6, 528),
    (2.0, 3.1, 600),
)


def efficientnet(
    net: Net, scale: int, batch: int = 32, image: Pair | None = None, channels: int = 3, classes: int = 1000
) -> str:
    width, depth, size = SCALES[scale]
    x = net.input("input", (batch, channels, *as_pair(image or size)))
    x = net.swish(net.batch_norm(net.conv(x, "features.0.0", _scale(32, width), 3, 2), "features.0.1"))
    for stage, (expansion, kernel, first, after, repeats) in enumerate(STAGES, 1):
        for number in range(math.ceil(repeats * depth)):
            stride = 1 if number else first
            block = Bottleneck(expansion, kernel, stride, _scale(after, width))
            x = _block(net, x, f"features.{stage}.{number}", block)
    x = net.swish(net.batch_norm(net.conv(x, "features.8.0", 4 * _scale(320, width), 1), "features.8.1"))
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(net.dropout(x, "classifier.0"), "classifier.1", classes)


def _block(net: Net, x: str, name: str, block: Bottleneck) -> str:
    before = net.shapes[x][1]
    wide = before * block.expansion
    y = x
    if block.expansion > 1:
        y = net.swish(net.batch_norm(net.conv(y, f"{name}.expand", wide, 1), f"{name}.bn1"))
    y = net.conv(y, f"{name}.depthwise", wide, block.kernel, block.stride, groups=wide)
    y = net.swish(net.batch_norm(y, f"{name}.bn2"))
    y = _squeeze_excite(net, y, f"{name}.se", max(1, before // 4))
    y = net.batch_norm(net.conv(y, f"{name}.project", block.channels, 1), f"{name}.bn3")
    return net.add(x, y, f"{name}.add") if net.shapes[x] == net.shapes[y] else y


def _squeeze_excite(net: Net, x: str, name: str, squeezed: int) -> str:
    y = net.global_average_pool(x, f"{name}.avgpool")
    y = net.swish(net.conv_with_bias(y, f"{name}.fc1", squeezed, 1))
    y = net.conv_with_bias(y, f"{name}.fc2", net.shapes[x][1], 1)
    return net.multiply(x, net.op("Sigmoid", [y], f"{name}.gate"), f"{name}.scale")


def _scale(channels: int, multiplier: float) -> int:
    """The nearest multiple of 8, but never less than 90% of what was meant."""
    meant = channels * multiplier
    near = max(8, int(meant + 4) // 8 * 8)
    return near + 8 if near < 0.9 * meant else near
