"""DenseNet (Huang et al., 2017), named as in torchvision."""

from __future__ import annotations

from remat_cli.zoo.layers import IMAGES, Images, Net

# depth: growth rate, channels after the stem, layers of each block
SHAPES = {
    121: (32, 64, (6, 12, 24, 16)),
    161: (48, 96, (6, 12, 36, 24)),
    169: (32, 64, (6, 12, 32, 32)),
    201: (32, 64, (6, 12, 48, 32)),
}


def densenet(net: Net, depth: int, images: Images = IMAGES) -> str:
    growth, stem, blocks = SHAPES[depth]
    x = net.input("input", images.shape)
    x = net.relu(net.batch_norm(net.conv(x, "features.conv0", stem, 7, 2), "features.norm0"))
    x = net.max_pool(x, "features.pool0", 3, 2, 1)
    for block, layers in enumerate(blocks, 1):
        for layer in range(1, layers + 1):
            name = f"features.denseblock{block}.denselayer{layer}"
            x = net.concat([x, _dense_layer(net, x, name, growth)], f"{name}.concat")
        if block < len(blocks):
            x = _transition(net, x, f"features.transition{block}")
    x = net.relu(net.batch_norm(x, "features.norm5"))
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(x, "classifier", images.classes)


def _dense_layer(net: Net, x: str, name: str, growth: int) -> str:
    y = net.conv(net.relu(net.batch_norm(x, f"{name}.norm1")), f"{name}.conv1", 4 * growth, 1)
    y = net.conv(net.relu(net.batch_norm(y, f"{name}.norm2")), f"{name}.conv2", growth, 3)
    return net.dropout(y, f"{name}.drop")


def _transition(net: Net, x: str, name: str) -> str:
    y = net.relu(net.batch_norm(x, f"{name}.norm"))
    return net.average_pool(net.conv(y, f"{name}.conv", net.shapes[x][1] // 2, 1), f"{name}.pool", 2, 2)
