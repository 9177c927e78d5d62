"""The U-Net of denoising diffusion models (Ho et al., 2020), with attention where images are small.

The noise level is fixed: its embedding is a constant, from which the network goes on as the paper has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from remat_cli.zoo.layers import Net, Pair, as_pair, need_multiple
from remat_cli.zoo.transformer import weigh

TIMES_AS_WIDE = (1, 1, 2, 2, 4, 4)  # each level, whose images are half as large as those of the one before
ATTENTIVE = 4  # the level with attention
BLOCKS = 2  # of a level on the way down; one more on the way up
GROUPS = 32  # of channels, or fewer where there are few channels
LEVEL = 500.0  # of noise
STD = 0.02


@dataclass(frozen=True, slots=True)
class Pictures:
    batch: int = 4
    image: Pair = 256
    channels: int = 3


PICTURES = Pictures()


def diffusion(net: Net, pictures: Pictures = PICTURES, width: int = 128) -> str:
    """Noisy images in, their noise out."""
    need_multiple(pictures.image, 1 << len(TIMES_AS_WIDE) - 1, "diffusion-unet")
    time = _embed_level(net, width)
    x = net.input("input", (pictures.batch, pictures.channels, *as_pair(pictures.image)))
    skips = [net.conv_with_bias(x, "conv_in", width, 3)]
    for level, times in enumerate(TIMES_AS_WIDE):
        for number in range(BLOCKS):
            skips.append(_step(net, skips[-1], f"down{level}.{number}", times * width, time, level == ATTENTIVE))
        if level + 1 < len(TIMES_AS_WIDE):
            skips.append(net.conv_with_bias(skips[-1], f"down{level}.half", times * width, 3, 2, 1))
    x = _step(net, skips[-1], "middle.0", TIMES_AS_WIDE[-1] * width, time, True)
    x = _step(net, x, "middle.1", TIMES_AS_WIDE[-1] * width, time, False)
    for level, times in reversed(list(enumerate(TIMES_AS_WIDE))):
        for number in range(BLOCKS + 1):
            x = net.concat([x, skips.pop()], f"up{level}.{number}.concat")
            x = _step(net, x, f"up{level}.{number}", times * width, time, level == ATTENTIVE)
        if level:
            x = net.conv_with_bias(net.upsample(x, f"up{level}.twice", "nearest"), f"up{level}.conv", times * width, 3)
    return net.conv_with_bias(net.swish(_normalized(net, x, "norm_out")), "conv_out", pictures.channels, 3)


def _embed_level(net: Net, width: int) -> str:
    waves = np.exp(-np.log(10_000) * np.arange(width // 2) / (width // 2))
    angles = LEVEL * waves
    x = net.constant("level", np.concatenate([np.sin(angles), np.cos(angles)])[None])
    x = net.swish(net.linear(x, "time.0", 4 * width))
    return net.swish(net.linear(x, "time.1", 4 * width))


def _step(net: Net, x: str, name: str, channels: int, time: str, attentive: bool) -> str:
    """A residual block, and attention if the level has it."""
    y = net.conv_with_bias(net.swish(_normalized(net, x, f"{name}.norm1")), f"{name}.conv1", channels, 3)
    shift = net.constant(f"{name}.time.shape", np.array([1, channels, 1, 1], np.int64))
    level = net.op("Reshape", [net.linear(time, f"{name}.time", channels), shift], f"{name}.level")
    y = net.swish(_normalized(net, net.add(y, level, f"{name}.shifted"), f"{name}.norm2"))
    y = net.conv_with_bias(net.dropout(y, f"{name}.drop"), f"{name}.conv2", channels, 3)
    x = x if net.shapes[x][1] == channels else net.conv_with_bias(x, f"{name}.shortcut", channels, 1)
    x = net.add(x, y, f"{name}.add")
    return _attend(net, x, f"{name}.attention") if attentive else x


def _attend(net: Net, x: str, name: str) -> str:
    """Attention of one head over all pixels."""
    batch, channels, height, width = net.shapes[x]
    pixels = net.reshape(_normalized(net, x, f"{name}.norm"), f"{name}.pixels", (batch, 1, channels, height * width))
    y = net.transpose(pixels, f"{name}.tokens", [0, 1, 3, 2])
    query, key, value = (net.dense(y, f"{name}.{part}", channels, STD) for part in ("query", "key", "value"))
    y = weigh(net, (query, net.transpose(key, f"{key}.last", [0, 1, 3, 2]), value), name)
    y = net.transpose(net.dense(y, f"{name}.out", channels, STD), f"{name}.first", [0, 2, 1])
    return net.add(x, net.reshape(y, f"{name}.image", (batch, channels, height, width)), f"{name}.add")


def _normalized(net: Net, x: str, name: str) -> str:
    return net.group_norm(x, name, min(GROUPS, net.shapes[x][1] // 4), 1e-6)
