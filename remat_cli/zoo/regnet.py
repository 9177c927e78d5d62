"""RegNet (Radosavovic et al., 2020), as torchvision has it: X without and Y with squeeze and excitation."""

from __future__ import annotations

from dataclasses import dataclass

from remat_cli.zoo.layers import IMAGES, Images, Net

# depths and widths of the four stages, and the channels of a group
SHAPES = {
    "x-400mf": ((1, 2, 7, 12), (32, 64, 160, 400), 16),
    "x-3.2gf": ((2, 6, 15, 2), (96, 192, 432, 1008), 48),
    "y-400mf": ((1, 3, 6, 6), (48, 104, 208, 440), 8),
    "y-3.2gf": ((2, 5, 13, 1), (72, 216, 576, 1512), 24),
}


@dataclass(frozen=True, slots=True)
class GroupedBlock:
    """`group`: channels of a group. `squeezed`: channels that excitation is told from; 0: there is none."""

    width: int
    group: int
    squeezed: int


def regnet(net: Net, scale: str, images: Images = IMAGES) -> str:
    depths, widths, group = SHAPES[scale]
    x = net.input("input", images.shape)
    x = net.relu(net.batch_norm(net.conv(x, "stem.0", 32, 3, 2), "stem.1"))
    for stage, (depth, width) in enumerate(zip(depths, widths), 1):
        for number in range(depth):
            squeezed = net.shapes[x][1] // 4 if scale.startswith("y") else 0
            x = _block(net, x, f"block{stage}-{number}", GroupedBlock(width, group, squeezed), 1 if number else 2)
    return net.linear(net.flatten(net.global_average_pool(x, "avgpool")), "fc", images.classes)


def _block(net: Net, x: str, name: str, block: GroupedBlock, stride: int) -> str:
    width = block.width
    y = net.relu(net.batch_norm(net.conv(x, f"{name}.a", width, 1), f"{name}.a.bn"))
    y = net.conv(y, f"{name}.b", width, 3, stride, groups=width // block.group)
    y = net.relu(net.batch_norm(y, f"{name}.b.bn"))
    if block.squeezed:
        y = _excite(net, y, f"{name}.se", block.squeezed)
    y = net.batch_norm(net.conv(y, f"{name}.c", width, 1), f"{name}.c.bn")
    if net.shapes[x] != net.shapes[y]:
        x = net.batch_norm(net.conv(x, f"{name}.proj", width, 1, stride), f"{name}.proj.bn")
    return net.relu(net.add(y, x, f"{name}.add"))


def _excite(net: Net, x: str, name: str, squeezed: int) -> str:
    y = net.global_average_pool(x, f"{name}.avgpool")
    y = net.relu(net.conv_with_bias(y, f"{name}.fc1", squeezed, 1))
    y = net.conv_with_bias(y, f"{name}.fc2", net.shapes[x][1], 1)
    return net.multiply(x, net.op("Sigmoid", [y], f"{name}.scale"), f"{name}.mul")
