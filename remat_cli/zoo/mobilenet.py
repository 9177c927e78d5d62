"""MobileNet v1 (Howard et al., 2017) and v2 (Sandler et al., 2018)."""

from __future__ import annotations

from remat_cli.zoo.layers import IMAGES, Images, Net

# v1: output channels and stride of each depthwise separable block
SEPARABLE = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)
# v2: expansion, output channels, repeats, first stride
INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_v1(net: Net, images: Images = IMAGES) -> str:
    x = net.input("input", images.shape)
    x = net.relu(net.batch_norm(net.conv(x, "conv1", 32, 3, 2), "bn1"))
    for number, (width, stride) in enumerate(SEPARABLE, 1):
        name = f"separable{number}"
        before = net.shapes[x][1]
        depthwise = net.conv(x, f"{name}.depthwise", before, 3, stride, groups=before)
        x = net.relu(net.batch_norm(depthwise, f"{name}.bn1"))
        x = net.relu(net.batch_norm(net.conv(x, f"{name}.pointwise", width, 1), f"{name}.bn2"))
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(net.dropout(x, "dropout"), "fc", images.classes)


def mobilenet_v2(net: Net, images: Images = IMAGES) -> str:
    x = net.input("input", images.shape)
    x = net.relu6(net.batch_norm(net.conv(x, "features.0.0", 32, 3, 2), "features.0.1"))
    layer = 1
    for expansion, width, repeats, first in INVERTED:
        for number in range(repeats):
            x = _add_inverted(net, x, f"features.{layer}.conv", expansion, width, 1 if number else first)
            layer += 1
    x = net.relu6(net.batch_norm(net.conv(x, f"features.{layer}.0", 1280, 1), f"features.{layer}.1"))
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(net.dropout(x, "classifier.0"), "classifier.1", images.classes)


def _add_inverted(net: Net, x: str, name: str, expansion: int, width: int, stride: int) -> str:
    wide = expansion * net.shapes[x][1]
    y = x
    if expansion > 1:
        y = net.relu6(net.batch_norm(net.conv(y, f"{name}.expand", wide, 1), f"{name}.bn1"))
    depthwise = net.conv(y, f"{name}.depthwise", wide, 3, stride, groups=wide)
    y = net.relu6(net.batch_norm(depthwise, f"{name}.bn2"))
    y = net.batch_norm(net.conv(y, f"{name}.project", width, 1), f"{name}.bn3")
    return net.add(x, y, f"{name}.add") if net.shapes[x] == net.shapes[y] else y
