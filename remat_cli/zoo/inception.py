"""Inception v3 (Szegedy et al., 2016) without its auxiliary classifier, named as in torchvision."""

from __future__ import annotations

from remat_cli.zoo.layers import Images, Net, Pair

IMAGES = Images(image=299)


def inception_v3(net: Net, images: Images = IMAGES) -> str:
    x = net.input("input", images.shape)
    x = _add_unpadded(net, x, "Conv2d_1a_3x3", 32, 3, 2)
    x = _add_unpadded(net, x, "Conv2d_2a_3x3", 32, 3, 1)
    x = _basic(net, x, "Conv2d_2b_3x3", 64, 3)
    x = net.max_pool(x, "maxpool1", 3, 2)
    x = _basic(net, x, "Conv2d_3b_1x1", 80, 1)
    x = _add_unpadded(net, x, "Conv2d_4a_3x3", 192, 3, 1)
    x = net.max_pool(x, "maxpool2", 3, 2)
    for name, pooled in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = _inception_a(net, x, name, pooled)
    x = _inception_b(net, x, "Mixed_6a")
    for name, width in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = _inception_c(net, x, name, width)
    x = _inception_d(net, x, "Mixed_7a")
    for name in ("Mixed_7b", "Mixed_7c"):
        x = _inception_e(net, x, name)
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(net.dropout(x, "dropout"), "fc", images.classes)


def _basic(net: Net, x: str, name: str, width: int, kernel: Pair) -> str:
    """The image keeps its size."""
    return _normalize(net, net.conv(x, f"{name}.conv", width, kernel), name)


def _add_unpadded(net: Net, x: str, name: str, width: int, kernel: Pair, stride: int) -> str:
    """The image loses what the kernel would see only in part."""
    return _normalize(net, net.conv(x, f"{name}.conv", width, kernel, stride, 0), name)


def _normalize(net: Net, x: str, name: str) -> str:
    return net.relu(net.batch_norm(x, f"{name}.bn", epsilon=1e-3))


def _inception_a(net: Net, x: str, name: str, pooled: int) -> str:
    one = _basic(net, x, f"{name}.branch1x1", 64, 1)
    five = _basic(net, x, f"{name}.branch5x5_1", 48, 1)
    five = _basic(net, five, f"{name}.branch5x5_2", 64, 5)
    three = _basic(net, x, f"{name}.branch3x3dbl_1", 64, 1)
    three = _basic(net, three, f"{name}.branch3x3dbl_2", 96, 3)
    three = _basic(net, three, f"{name}.branch3x3dbl_3", 96, 3)
    pool = _basic(net, net.average_pool(x, f"{name}.pool", 3, 1, 1), f"{name}.branch_pool", pooled, 1)
    return net.concat([one, five, three, pool], f"{name}.concat")


def _inception_b(net: Net, x: str, name: str) -> str:
    three = _add_unpadded(net, x, f"{name}.branch3x3", 384, 3, 2)
    double = _basic(net, x, f"{name}.branch3x3dbl_1", 64, 1)
    double = _basic(net, double, f"{name}.branch3x3dbl_2", 96, 3)
    double = _add_unpadded(net, double, f"{name}.branch3x3dbl_3", 96, 3, 2)
    return net.concat([three, double, net.max_pool(x, f"{name}.pool", 3, 2)], f"{name}.concat")


def _inception_c(net: Net, x: str, name: str, width: int) -> str:
    one = _basic(net, x, f"{name}.branch1x1", 192, 1)
    seven = _basic(net, x, f"{name}.branch7x7_1", width, 1)
    seven = _basic(net, seven, f"{name}.branch7x7_2", width, (1, 7))
    seven = _basic(net, seven, f"{name}.branch7x7_3", 192, (7, 1))
    double = _basic(net, x, f"{name}.branch7x7dbl_1", width, 1)
    for number, kernel in ((2, (7, 1)), (3, (1, 7)), (4, (7, 1))):
        double = _basic(net, double, f"{name}.branch7x7dbl_{number}", width, kernel)
    double = _basic(net, double, f"{name}.branch7x7dbl_5", 192, (1, 7))
    pool = _basic(net, net.average_pool(x, f"{name}.pool", 3, 1, 1), f"{name}.branch_pool", 192, 1)
    return net.concat([one, seven, double, pool], f"{name}.concat")


def _inception_d(net: Net, x: str, name: str) -> str:
    three = _basic(net, x, f"{name}.branch3x3_1", 192, 1)
    three = _add_unpadded(net, three, f"{name}.branch3x3_2", 320, 3, 2)
    seven = _basic(net, x, f"{name}.branch7x7x3_1", 192, 1)
    seven = _basic(net, seven, f"{name}.branch7x7x3_2", 192, (1, 7))
    seven = _basic(net, seven, f"{name}.branch7x7x3_3", 192, (7, 1))
    seven = _add_unpadded(net, seven, f"{name}.branch7x7x3_4", 192, 3, 2)
    return net.concat([three, seven, net.max_pool(x, f"{name}.pool", 3, 2)], f"{name}.concat")


def _inception_e(net: Net, x: str, name: str) -> str:
    one = _basic(net, x, f"{name}.branch1x1", 320, 1)
    three = _add_forked(net, _basic(net, x, f"{name}.branch3x3_1", 384, 1), f"{name}.branch3x3_2")
    double = _basic(net, x, f"{name}.branch3x3dbl_1", 448, 1)
    double = _add_forked(net, _basic(net, double, f"{name}.branch3x3dbl_2", 384, 3), f"{name}.branch3x3dbl_3")
    pool = _basic(net, net.average_pool(x, f"{name}.pool", 3, 1, 1), f"{name}.branch_pool", 192, 1)
    return net.concat([one, three, double, pool], f"{name}.concat")


def _add_forked(net: Net, x: str, name: str) -> str:
    wide = _basic(net, x, f"{name}a", 384, (1, 3))
    return net.concat([wide, _basic(net, x, f"{name}b", 384, (3, 1))], f"{name}.concat")
