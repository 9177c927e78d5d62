"""ResNeSt (Zhang et al., 2020): ResNet's bottlenecks with split attention over two parts of each convolution."""

from __future__ import annotations

import numpy as np

from remat_cli.zoo.layers import IMAGES, Images, Net
from remat_cli.zoo.resnet import BLOCKS

PARTS = 2  # the paper's radix


def resnest(net: Net, depth: int, images: Images = IMAGES) -> str:
    x = net.input("input", images.shape)
    stem = 32 if depth == 50 else 64
    for number, (width, stride) in enumerate(((stem, 2), (stem, 1), (2 * stem, 1)), 1):
        x = net.relu(net.batch_norm(net.conv(x, f"stem{number}", width, 3, stride), f"stem{number}.bn"))
    x = net.max_pool(x, "maxpool", 3, 2, 1)
    for stage, blocks in enumerate(BLOCKS[depth]):
        for number in range(blocks):
            stride = 2 if stage and number == 0 else 1
            x = _bottleneck(net, x, f"layer{stage + 1}.{number}", 64 << stage, stride)
    return net.linear(net.flatten(net.global_average_pool(x, "avgpool")), "fc", images.classes)


def _bottleneck(net: Net, x: str, name: str, width: int, stride: int) -> str:
    y = net.relu(net.batch_norm(net.conv(x, f"{name}.conv1", width, 1), f"{name}.bn1"))
    y = _split_attention(net, y, f"{name}.conv2", width)
    if stride > 1:
        y = net.average_pool(y, f"{name}.avd", 3, stride, 1)
    y = net.batch_norm(net.conv(y, f"{name}.conv3", 4 * width, 1), f"{name}.bn3")
    if net.shapes[x] != net.shapes[y]:
        if stride > 1:
            x = net.average_pool(x, f"{name}.downsample.0", stride, stride)
        x = net.batch_norm(net.conv(x, f"{name}.downsample.1", 4 * width, 1), f"{name}.downsample.2")
    return net.relu(net.add(y, x, f"{name}.add"))


def _split_attention(net: Net, x: str, name: str, width: int) -> str:
    """Twice as many channels, in two parts whose weights sum to one for each channel."""
    y = net.relu(net.batch_norm(net.conv(x, name, PARTS * width, 3, groups=PARTS), f"{name}.bn0"))
    batch, _, height, breadth = net.shapes[y]
    parts = net.reshape(y, f"{name}.parts", (batch, PARTS, width, height, breadth))
    total = _sum(net, parts, f"{name}.sum")
    z = net.global_average_pool(total, f"{name}.avgpool")
    z = net.conv_with_bias(z, f"{name}.fc1", max(width * PARTS // 4, 32), 1)
    z = net.conv_with_bias(net.relu(net.batch_norm(z, f"{name}.bn1")), f"{name}.fc2", PARTS * width, 1)
    z = net.reshape(z, f"{name}.scores", (batch, PARTS, width, 1, 1))
    z = net.op("Softmax", [z], f"{name}.softmax", axis=1)
    return _sum(net, net.multiply(parts, z, f"{name}.weighted"), f"{name}.joined")


def _sum(net: Net, x: str, name: str) -> str:
    axes = net.constant(f"{name}.axes", np.array([1], np.int64))
    return net.op("ReduceSum", [x, axes], name, keepdims=0)
