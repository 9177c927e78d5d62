"""VoVNet (Lee et al., 2019): one-shot aggregation, which joins what all convolutions of a module gave, once."""

from __future__ import annotations

from remat_cli.zoo.layers import IMAGES, Images, Net

MODULES = {39: (1, 1, 2, 2), 57: (1, 1, 4, 3)}
INNER, OUTER, LAYERS = (128, 160, 192, 224), (256, 512, 768, 1024), 5


def vovnet(net: Net, depth: int, images: Images = IMAGES) -> str:
    x = net.input("input", images.shape)
    for number, (width, stride) in enumerate(((64, 2), (64, 1), (128, 2)), 1):
        x = _conv(net, x, f"stem{number}", width, 3, stride)
    for stage, (inner, outer) in enumerate(zip(INNER, OUTER)):
        if stage:
            x = net.max_pool(x, f"stage{stage + 2}.pool", 3, 2, 1)
        for number in range(1, MODULES[depth][stage] + 1):
            x = _module(net, x, f"stage{stage + 2}.osa{number}", inner, outer)
    return net.linear(net.flatten(net.global_average_pool(x, "avgpool")), "fc", images.classes)


def _module(net: Net, x: str, name: str, inner: int, outer: int) -> str:
    parts = [x]
    for number in range(1, LAYERS + 1):
        parts.append(_conv(net, parts[-1], f"{name}.conv{number}", inner, 3, 1))
    return _conv(net, net.concat(parts, f"{name}.concat"), f"{name}.joined", outer, 1, 1)


def _conv(net: Net, x: str, name: str, width: int, kernel: int, stride: int) -> str:
    return net.relu(net.batch_norm(net.conv(x, name, width, kernel, stride), f"{name}.bn"))
