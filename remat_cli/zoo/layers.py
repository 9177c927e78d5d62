"""The layers that networks are made of, as methods that write ONNX nodes and return the name of their output.

Invariant: a layer called NAME writes nodes and weights whose names start with NAME, in PyTorch's way where it has one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import numpy_helper

from remat_cli.errors import Usage
from remat_cli.zoo.graph import Builder, Shape

Pair = int | tuple[int, int]


def as_pair(value: Pair) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


@dataclass(frozen=True, slots=True)
class Images:
    """The pictures that a network reads, and how many classes it tells apart."""

    batch: int = 32
    image: Pair = 224
    channels: int = 3
    classes: int = 1000

    @property
    def shape(self) -> Shape:
        return self.batch, self.channels, *as_pair(self.image)


IMAGES, SMALL_IMAGES = Images(), Images(image=32, classes=10)


class Net(Builder):
    """A network in the making: convolutions in NCHW, sequences in [batch, position, feature]."""

    __slots__ = ()

    def conv(
        self,
        x: str,
        name: str,
        channels: int,
        kernel: Pair,
        stride: int = 1,
        pad: Pair | None = None,
        groups: int = 1,
        bias: bool = False,
    ) -> str:
        """Without `pad`, an odd kernel at stride 1 keeps the image's size. `groups` of channels are each by itself."""
        sizes = as_pair(kernel)
        pads = [size // 2 for size in sizes] if pad is None else as_pair(pad)
        shape = (channels, self.shapes[x][1] // groups, *sizes)
        inputs = [x, self.weight(f"{name}.weight", shape, std=math.sqrt(2 / math.prod(shape[1:])))]
        if bias:
            inputs.append(self.weight(f"{name}.bias", (channels,)))
        return self._slide("Conv", inputs, name, sizes, stride, pads, group=groups)

    def conv_with_bias(
        self, x: str, name: str, channels: int, kernel: Pair, stride: int = 1, pad: Pair | None = None
    ) -> str:
        return self.conv(x, name, channels, kernel, stride, pad, bias=True)

    def conv_transpose(self, x: str, name: str, channels: int, kernel: int, stride: int, bias: bool) -> str:
        """The image becomes `stride` times as large."""
        before, pad = self.shapes[x][1], (kernel - stride) // 2
        std = math.sqrt(2 * stride * stride / (before * kernel * kernel))
        inputs = [x, self.weight(f"{name}.weight", (before, channels, kernel, kernel), std=std)]
        if bias:
            inputs.append(self.weight(f"{name}.bias", (channels,)))
        return self.op("ConvTranspose", inputs, name, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def batch_norm(self, x: str, name: str, epsilon: float = 1e-5, momentum: float = 0.9) -> str:
        """In training mode the updated statistics come out too, as outputs of the model."""
        size = (self.shapes[x][1],)
        inputs = [
            x,
            self.weight(f"{name}.weight", size, fill=1.0),
            self.weight(f"{name}.bias", size),
            self.weight(f"{name}.running_mean", size, buffer=True),
            self.weight(f"{name}.running_var", size, fill=1.0, buffer=True),
        ]
        updated = [f"{name}.running_mean_updated", f"{name}.running_var_updated"] if self.training else []
        self.statistics += updated
        mode = 1 if self.training else None
        outputs = [name, *updated]
        return self.node("BatchNormalization", inputs, outputs, epsilon=epsilon, momentum=momentum, training_mode=mode)[
            0
        ]

    def max_pool(self, x: str, name: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self._slide("MaxPool", [x], name, [kernel] * 2, stride, [pad] * 2)

    def max_pool_indices(self, x: str, name: str) -> Sequence[str]:
        """A 2x2 pool and where its maxima were, for `max_unpool`."""
        return self.node("MaxPool", [x], [name, f"{name}.indices"], kernel_shape=[2, 2], strides=[2, 2])

    def max_unpool(self, x: str, places: str, name: str) -> str:
        return self.op("MaxUnpool", [x, places], name, kernel_shape=[2, 2], strides=[2, 2])

    def average_pool(self, x: str, name: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self._slide("AveragePool", [x], name, [kernel] * 2, stride, [pad] * 2, count_include_pad=1)

    def _slide(
        self, kind: str, inputs: list[str], name: str, kernel: list[int], stride: int, pads: list[int], **more: int
    ) -> str:
        """A window over an image, which must not be smaller: ONNX infers one place there, and runtimes fail."""
        if any(size + 2 * pad < window for size, pad, window in zip(self.shapes[inputs[0]][2:], pads, kernel)):
            raise Usage(f"nothing is left at {name}: its window is larger than the image; ask for larger data")
        return self.op(kind, inputs, name, kernel_shape=kernel, strides=[stride] * 2, pads=[*pads] * 2, **more)

    def global_average_pool(self, x: str, name: str) -> str:
        return self.op("GlobalAveragePool", [x], name)

    def upsample(self, x: str, name: str, mode: str) -> str:
        """Twice the height and the width, `mode` being nearest or linear."""
        scales = self.constant(f"{name}.scales", np.array([1, 1, 2, 2], np.float32))
        how, rounding = ("asymmetric", "floor") if mode == "nearest" else ("half_pixel", None)
        modes = {"mode": mode, "coordinate_transformation_mode": how, "nearest_mode": rounding}
        return self.op("Resize", [x, "", scales], name, **modes)

    def linear(self, x: str, name: str, features: int, std: float | None = None) -> str:
        """A Gemm for matrices; its weight is [out, in], as PyTorch keeps it."""
        before = self.shapes[x][-1]
        weight = self.weight(f"{name}.weight", (features, before), std=std or math.sqrt(2 / before))
        return self.op("Gemm", [x, weight, self.weight(f"{name}.bias", (features,))], name, transB=1)

    def product(self, x: str, name: str, features: int, std: float) -> str:
        """A MatMul without a bias."""
        return self.op("MatMul", [x, self.weight(f"{name}.weight", (self.shapes[x][-1], features), std=std)], name)

    def dense(self, x: str, name: str, features: int, std: float, shared: str | None = None) -> str:
        """A MatMul and an Add for sequences; its weight is [in, out], as GPT-2 keeps it. `shared`: whose weights."""
        whose = shared or name
        weight = self.weight(f"{whose}.weight", (self.shapes[x][-1], features), std=std)
        product = self.op("MatMul", [x, weight], f"{name}.matmul")
        return self.add(product, self.weight(f"{whose}.bias", (features,)), name)

    def layer_norm(self, x: str, name: str, epsilon: float, shared: str | None = None) -> str:
        size, whose = self.shapes[x][-1:], shared or name
        inputs = [x, self.weight(f"{whose}.weight", size, fill=1.0), self.weight(f"{whose}.bias", size)]
        return self.op("LayerNormalization", inputs, name, axis=-1, epsilon=epsilon)

    def rms_norm(self, x: str, name: str, epsilon: float) -> str:
        """By the root of the mean square of the last axis, op by op as PyTorch exports it."""
        square, axis = self.multiply(x, x, f"{name}.square"), self.constant(f"{name}.axis", [-1])
        mean = self.op("ReduceMean", [square, axis], f"{name}.mean")
        more = self.add(mean, self.constant(f"{name}.epsilon", epsilon), f"{name}.more")
        y = self.op("Div", [x, self.op("Sqrt", [more], f"{name}.root")], f"{name}.normal")
        return self.multiply(y, self.weight(f"{name}.weight", self.shapes[x][-1:], fill=1.0), name)

    def group_norm(self, x: str, name: str, groups: int, epsilon: float) -> str:
        """An InstanceNormalization of groups of channels, and a weight and a bias for each channel."""
        batch, channels, *image = self.shapes[x]
        ones, zeros = (
            self.constant(f"{name}.{what}", np.full(groups, what == "ones", np.float32)) for what in ("ones", "zeros")
        )
        y = self.reshape(x, f"{name}.groups", (batch, groups, channels // groups * math.prod(image)))
        y = self.op("InstanceNormalization", [y, ones, zeros], f"{name}.normal", epsilon=epsilon)
        y = self.reshape(y, f"{name}.channels", self.shapes[x])
        y = self.multiply(y, self.weight(f"{name}.weight", (channels, 1, 1), fill=1.0), f"{name}.scaled")
        return self.add(y, self.weight(f"{name}.bias", (channels, 1, 1)), name)

    def relu(self, x: str) -> str:
        return self.op("Relu", [x], f"{x}.relu")

    def relu6(self, x: str) -> str:
        if "zero" not in self.shapes:
            self.constant("zero", 0.0)
            self.constant("six", 6.0)
        return self.op("Clip", [x, "zero", "six"], f"{x}.relu6")

    def swish(self, x: str) -> str:
        return self.multiply(x, self.op("Sigmoid", [x], f"{x}.sigmoid"), f"{x}.swish")

    def gelu(self, x: str, approximate: str = "none") -> str:
        return self.op("Gelu", [x], f"{x}.gelu", approximate=approximate)

    def add(self, a: str, b: str, name: str) -> str:
        return self.op("Add", [a, b], name)

    def multiply(self, a: str, b: str, name: str) -> str:
        return self.op("Mul", [a, b], name)

    def concat(self, parts: list[str], name: str, axis: int = 1) -> str:
        return self.op("Concat", parts, name, axis=axis)

    def flatten(self, x: str, name: str = "flatten") -> str:
        return self.op("Flatten", [x], name, axis=1)

    def reshape(self, x: str, name: str, shape: Shape) -> str:
        """The batch stays as it is."""
        written = (0, *shape[1:]) if self.free_batch else shape  # 0: as before
        return self.op("Reshape", [x, self.constant(f"{name}.shape", np.array(written, np.int64))], name)

    def for_each(self, x: str, name: str, shape: Shape) -> str:
        """Such a shape for each example of `x`, as a value."""
        whole = np.array((self.shapes[x][0], *shape), np.int64)
        if not self.free_batch:
            return self.constant(name, whole)
        self.known[name] = numpy_helper.from_array(whole, name)
        batch = self.op("Shape", [x], f"{name}.batch", start=0, end=1)
        rest = self.constant(f"{name}.rest", np.array(shape, np.int64))
        return self.op("Concat", [batch, rest], name, axis=0)

    def transpose(self, x: str, name: str, order: list[int]) -> str:
        return self.op("Transpose", [x], name, perm=order)

    def classes_last(self, x: str, name: str) -> str:
        """A picture of scores with each pixel's classes side by side."""
        self.class_axis = 3
        return self.transpose(x, name, [0, 2, 3, 1])

    def dropout(self, x: str, name: str) -> str:
        """Nothing at all unless a ratio was asked for; its seed is fixed, so that a second run draws the same mask."""
        if not self.dropout_ratio or not self.training:
            return x
        ratio = self.constant(f"{name}.ratio", self.dropout_ratio)
        train = self.constant(f"{name}.training", np.array(True))
        return self.op("Dropout", [x, ratio, train], name, seed=self.seed + len(self.nodes))


def need_multiple(image: Pair, step: int, name: str) -> None:
    """Networks that halve an image and join the halves again need sizes that divide evenly."""
    if any(size % step for size in as_pair(image)):
        sizes = "x".join(map(str, dict.fromkeys(as_pair(image))))
        raise Usage(f"{name} needs an image size divisible by {step}, not {sizes}")
