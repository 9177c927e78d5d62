"""Small networks to start from, and the toy chain of Rotor's paper."""

from __future__ import annotations

from remat_cli.zoo.layers import SMALL_IMAGES, Images, Net, need_multiple

# Rotor (Beaumont et al., RR-9302), section 3.2, Table 2: the activations of its toy chain hold 7.63, 9.54, 10.68,
# 11.06, 10.68, 9.54 and 7.63 MiB of float32. These widths give those sizes at a batch of 10000.
TOY_WIDTHS = (200, 250, 280, 290, 280, 250, 200)


def mlp(net: Net, batch: int = 32, layers: int = 3, hidden: int = 256, features: int = 784, classes: int = 10) -> str:
    """`layers` hidden layers."""
    x = net.input("input", (batch, features))
    for number in range(1, layers + 1):
        x = net.dropout(net.relu(net.linear(x, f"fc{number}", hidden)), f"drop{number}")
    return net.linear(x, "head", classes)


def cnn(net: Net, images: Images = SMALL_IMAGES, layers: int = 3, width: int = 32) -> str:
    """`layers` of Conv, BatchNormalization, Relu and MaxPool, the channels doubling each time."""
    need_multiple(images.image, 1 << layers, "cnn")
    x = net.input("input", images.shape)
    for number in range(1, layers + 1):
        x = net.conv(x, f"conv{number}", width << (number - 1), 3)
        x = net.max_pool(net.relu(net.batch_norm(x, f"bn{number}")), f"pool{number}", 2, 2)
    x = net.flatten(net.global_average_pool(x, "avgpool"))
    return net.linear(net.dropout(x, "drop"), "fc", images.classes)


def rotor_toy(net: Net, batch: int = 10000) -> str:
    """Six linear layers, each one stage of the chain: what a stage saves is its output, as in the table."""
    x = net.input("input", (batch, TOY_WIDTHS[0]))
    for number, width in enumerate(TOY_WIDTHS[1:], 1):
        x = net.linear(x, f"fc{number}", width)
    return x
