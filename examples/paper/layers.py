"""Networks by layers, costs in FLOPs, sizes in bytes: the grain at which the Checkmate paper compares methods.

One image of 224 x 224 (416 x 608 for U-Net, FCN8 and SegNet), float32; a batch multiplies all costs and sizes alike. A
gradient reads what it needs: that of a convolution its input, of a ReLU its output, of a pooling both. It costs twice
the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

from remat_cli.zoo.mobilenet import SEPARABLE
from solvers.problem import Node, Problem

FLOAT = 4


@dataclass(frozen=True, slots=True)
class Layer:
    reads: tuple[int, ...]
    channels: int
    height: int
    width: int
    flops: int
    needs_input: bool
    needs_output: bool
    parameters: int = 0

    @property
    def elements(self) -> int:
        return self.channels * self.height * self.width


@dataclass(slots=True)
class Network:
    """Layers are added one by one; each method returns the new layer's number, and -1 is the input."""

    channels: int = 3
    height: int = 224
    width: int = 224
    layers: list[Layer] = field(default_factory=list)

    def shape(self, x: int) -> tuple[int, int, int]:
        if x < 0:
            return self.channels, self.height, self.width
        layer = self.layers[x]
        return layer.channels, layer.height, layer.width

    def conv(self, x: int, channels: int, kernel: int = 3, stride: int = 1, groups: int = 1, relu: bool = True) -> int:
        given, height, width = self.shape(x)
        tall, wide = ceil(height / stride), ceil(width / stride)
        flops = 2 * kernel * kernel * given // groups * channels * tall * wide
        weights = (kernel * kernel * given // groups + 1) * channels
        return self._add((x,), (channels, tall, wide), flops, needs_output=relu, parameters=weights)

    def dense(self, x: int, channels: int, relu: bool = True) -> int:
        given, height, width = self.shape(x)
        weights = (given * height * width + 1) * channels
        flops = 2 * given * height * width * channels
        return self._add((x,), (channels, 1, 1), flops, needs_output=relu, parameters=weights)

    def pool(self, x: int, kernel: int = 2, stride: int = 2) -> int:
        channels, height, width = self.shape(x)
        tall, wide = ceil(height / stride), ceil(width / stride)
        return self._add((x,), (channels, tall, wide), kernel * kernel * channels * tall * wide, needs_output=True)

    def norm(self, x: int) -> int:
        return self._add((x,), self.shape(x), 8 * self._elements(x), parameters=2 * self.shape(x)[0])

    def relu(self, x: int) -> int:
        return self._add((x,), self.shape(x), self._elements(x), needs_input=False, needs_output=True)

    def plus(self, x: int, y: int) -> int:
        return self._add((x, y), self.shape(x), self._elements(x), needs_input=False)

    def mean(self, x: int) -> int:
        return self._add((x,), (self.shape(x)[0], 1, 1), self._elements(x), needs_input=False)

    def upsample(self, x: int, channels: int) -> int:
        """A transposed 2 x 2 convolution."""
        given, height, width = self.shape(x)
        weights = (4 * given + 1) * channels
        flops = 8 * given * channels * height * width
        return self._add((x,), (channels, 2 * height, 2 * width), flops, parameters=weights)

    def concat(self, x: int, y: int) -> int:
        channels, height, width = self.shape(x)
        return self._add((x, y), (channels + self.shape(y)[0], height, width), 0, needs_input=False)

    def loss(self, x: int) -> int:
        return self._add((x,), (1, 1, 1), 5 * self._elements(x))

    def _elements(self, x: int) -> int:
        channels, height, width = self.shape(x)
        return channels * height * width

    def _add(
        self,
        reads: tuple[int, ...],
        shape: tuple[int, int, int],
        flops: int,
        needs_input: bool = True,
        needs_output: bool = False,
        parameters: int = 0,
    ) -> int:
        self.layers.append(Layer(reads, *shape, flops, needs_input, needs_output, parameters))
        return len(self.layers) - 1

    def problem(self, batch: int = 0) -> Problem:
        """The training step: each layer, then their gradients in reverse, one value for each input of the layer.

        With a batch, by the paper's accounting: sizes are the whole batch's, inputs and twice the parameters are always
        there, and a gradient reads all that its layer read and wrote, needed or not.
        """
        nodes = [Node(x.flops, tuple(r for r in x.reads if r >= 0), (i,)) for i, x in enumerate(self.layers)]
        sizes = [FLOAT * layer.elements for layer in self.layers]
        arriving: list[list[int]] = [[] for _ in self.layers]
        for index, layer in reversed(list(enumerate(self.layers))):
            own = [
                *(layer.reads if layer.needs_input or batch else ()),
                *([index] if layer.needs_output or batch else []),
            ]
            reads = sorted({*arriving[index], *(value for value in own if value >= 0)})
            writes = []
            for read in layer.reads:
                writes.append(len(sizes))
                sizes.append(FLOAT * self._elements(read) if read >= 0 else FLOAT)
                if read >= 0:
                    arriving[read].append(writes[-1])
            nodes.append(Node(2 * layer.flops, tuple(reads), tuple(writes), backward=True))
        if not batch:
            return Problem(tuple(nodes), tuple(sizes), ())
        fixed = FLOAT * (batch * self._elements(-1) + 2 * sum(layer.parameters for layer in self.layers))
        return Problem(tuple(nodes), tuple(batch * size for size in sizes), (), fixed)


def vgg(plan: Sequence[int]) -> Network:
    net, x = Network(), -1
    for channels, times in zip((64, 128, 256, 512, 512), plan, strict=True):
        for _ in range(times):
            x = net.conv(x, channels)
        x = net.pool(x)
    net.loss(net.dense(net.dense(net.dense(x, 4096), 4096), 1000, relu=False))
    return net


def mobilenet() -> Network:
    """MobileNet v1, convolution, normalization and ReLU each a layer."""
    net = Network()

    def block(x: int, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> int:
        return net.relu(net.norm(net.conv(x, channels, kernel, stride, groups, relu=False)))

    x, channels = block(-1, 32, 3, 2), 32
    for wide, stride in SEPARABLE:
        x = block(block(x, channels, 3, stride, groups=channels), wide, 1)
        channels = wide
    net.loss(net.dense(net.mean(x), 1000, relu=False))
    return net


def resnet50() -> Network:
    net = Network()

    def conv(x: int, channels: int, kernel: int, stride: int = 1) -> int:
        return net.norm(net.conv(x, channels, kernel, stride, relu=False))

    x = net.pool(net.relu(conv(-1, 64, 7, 2)), 3)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = net.relu(conv(net.relu(conv(x, width, 1)), width, 3, stride))
            inner = conv(inner, 4 * width, 1)
            x = net.relu(net.plus(inner, x if block else conv(x, 4 * width, 1, stride)))
    net.loss(net.dense(net.mean(x), 1000, relu=False))
    return net


def unet() -> Network:
    net = Network(height=416, width=608)
    x, skips = -1, []
    for channels in (64, 128, 256, 512):
        x = net.conv(net.conv(x, channels), channels)
        skips.append(x)
        x = net.pool(x)
    x = net.conv(net.conv(x, 1024), 1024)
    for channels in (512, 256, 128, 64):
        x = net.concat(skips.pop(), net.upsample(x, channels))
        x = net.conv(net.conv(x, channels), channels)
    net.loss(net.conv(x, 2, 1, relu=False))
    return net


def vgg_unet() -> Network:
    """U-Net on VGG-16 as in Keras's segmentation models, whose scores have half the image's height and width."""
    net, x, skips = Network(height=416, width=608), -1, []
    for channels, times in zip((64, 128, 256, 512), (2, 2, 3, 3), strict=True):
        for _ in range(times):
            x = net.conv(x, channels)
        x = net.pool(x)
        skips.append(x)
    x = net.norm(net.conv(skips.pop(), 512, relu=False))
    for channels in (256, 128, 64):
        x = net.concat(skips.pop(), net.upsample(x, 2 * channels))
        x = net.norm(net.conv(x, channels, relu=False))
    net.loss(net.conv(x, 2, relu=False))
    return net


def fcn8() -> Network:
    """FCN-8s on VGG-16: scores of three depths, each twice as large as the deeper one and added to it."""
    net, x, depths = Network(height=416, width=608), -1, []
    for channels, times in zip((64, 128, 256, 512, 512), (2, 2, 3, 3, 3), strict=True):
        for _ in range(times):
            x = net.conv(x, channels)
        x = net.pool(x)
        depths.append(x)
    x = net.conv(net.conv(net.conv(x, 4096, 7), 4096, 1), 21, 1, relu=False)
    for depth in (depths[3], depths[2]):
        x = net.plus(net.upsample(x, 21), net.conv(depth, 21, 1, relu=False))
    for _ in range(3):
        x = net.upsample(x, 21)
    net.loss(x)
    return net


def segnet() -> Network:
    """SegNet on VGG-16, the decoder the encoder's mirror image."""
    net, x = Network(height=416, width=608), -1
    for channels, times in zip((64, 128, 256, 512, 512), (2, 2, 3, 3, 3), strict=True):
        for _ in range(times):
            x = net.conv(x, channels)
        x = net.pool(x)
    for channels, times in zip((512, 512, 256, 128, 64), (3, 3, 3, 2, 1), strict=True):
        x = net.upsample(x, channels)
        for _ in range(times):
            x = net.conv(x, channels)
    net.loss(net.conv(x, 21, 3, relu=False))
    return net


NETWORKS: dict[str, Callable[[], Network]] = {
    "MobileNet": mobilenet,
    "VGG-16": lambda: vgg((2, 2, 3, 3, 3)),
    "VGG-19": lambda: vgg((2, 2, 4, 4, 4)),
    "U-Net": unet,
    "ResNet-50": resnet50,
    "FCN8": fcn8,
    "SegNet": segnet,
}
