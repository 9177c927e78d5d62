"""ResNet (He et al., 2015) and the pre-activation ResNet-1001 for small images (He et al., 2016)."""

from __future__ import annotations

from remat_cli.errors import Usage
from remat_cli.zoo.layers import IMAGES, SMALL_IMAGES, Images, Net

BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
}


def resnet(net: Net, depth: int, images: Images = IMAGES) -> str:
    x = net.input("input", images.shape)
    x = net.relu(net.batch_norm(net.conv(x, "conv1", 64, 7, 2), "bn1"))
    x = net.max_pool(x, "maxpool", 3, 2, 1)
    block = _bottleneck if depth >= 50 else _basic
    for stage, blocks in enumerate(BLOCKS[depth]):
        for number in range(blocks):
            stride = 2 if stage and number == 0 else 1
            x = block(net, x, f"layer{stage + 1}.{number}", 64 << stage, stride)
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(x, "fc", images.classes)


def _basic(net: Net, x: str, name: str, width: int, stride: int) -> str:
    y = net.relu(net.batch_norm(net.conv(x, f"{name}.conv1", width, 3, stride), f"{name}.bn1"))
    y = net.batch_norm(net.conv(y, f"{name}.conv2", width, 3), f"{name}.bn2")
    return net.relu(net.add(y, _shortcut(net, x, name, width, stride), f"{name}.add"))


def _bottleneck(net: Net, x: str, name: str, width: int, stride: int) -> str:
    y = net.relu(net.batch_norm(net.conv(x, f"{name}.conv1", width, 1), f"{name}.bn1"))
    y = net.relu(net.batch_norm(net.conv(y, f"{name}.conv2", width, 3, stride), f"{name}.bn2"))
    y = net.batch_norm(net.conv(y, f"{name}.conv3", 4 * width, 1), f"{name}.bn3")
    return net.relu(net.add(y, _shortcut(net, x, name, 4 * width, stride), f"{name}.add"))


def _shortcut(net: Net, x: str, name: str, channels: int, stride: int) -> str:
    if stride == 1 and net.shapes[x][1] == channels:
        return x
    return net.batch_norm(net.conv(x, f"{name}.downsample.0", channels, 1, stride), f"{name}.downsample.1")


def preactivation(net: Net, layers: int = 1001, images: Images = SMALL_IMAGES) -> str:
    """Bottlenecks with BN and Relu before each convolution, 9n + 2 layers in three stages."""
    blocks, rest = divmod(layers - 2, 9)
    if rest or blocks < 1:
        raise Usage(f"a pre-activation ResNet has 9n + 2 layers (11, 20, ... 164, 1001), not {layers}")
    x = net.conv(net.input("input", images.shape), "conv1", 16, 3)
    for stage in range(3):
        for number in range(blocks):
            stride = 2 if stage and number == 0 else 1
            x = _add_preactivated(net, x, f"layer{stage + 1}.{number}", 16 << stage, stride)
    x = net.relu(net.batch_norm(x, "bn"))
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(x, "fc", images.classes)


def _add_preactivated(net: Net, x: str, name: str, width: int, stride: int) -> str:
    """Where the shape changes, the shortcut too starts after the first BN and Relu."""
    first = net.relu(net.batch_norm(x, f"{name}.bn1"))
    y = net.relu(net.batch_norm(net.conv(first, f"{name}.conv1", width, 1), f"{name}.bn2"))
    y = net.relu(net.batch_norm(net.conv(y, f"{name}.conv2", width, 3, stride), f"{name}.bn3"))
    y = net.conv(y, f"{name}.conv3", 4 * width, 1)
    if net.shapes[x] != net.shapes[y]:
        x = net.conv(first, f"{name}.shortcut", 4 * width, 1, stride)
    return net.add(y, x, f"{name}.add")
