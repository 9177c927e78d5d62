"""The layers that networks are made of, as methods that write ONNX nodes and return the name of their output.

Invariant: a layer called NAME writes nodes and weights whose names start with NAME, in PyTorch's way where it has one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True, slots=True)
class _Sweep:
    """How a convolution's kernel goes over an image."""

    kernel: list[int]
    stride: int
    pads: list[int]


def _sweep(kernel: Pair, stride: int, pad: Pair | None) -> _Sweep:
    sizes = as_pair(kernel)
    return _Sweep(sizes, stride, [size // 2 for size in sizes] if pad is None else as_pair(pad))


class Net(Builder):
    """A network in the making: convolutions in NCHW, sequences in [batch, position, feature]."""

    __slots__ = ()

    def conv(self, x: str, name: str, channels: int, kernel: Pair, stride: int = 1, pad: Pair | None = None) -> str:
        """Without `pad`, an odd kernel at stride 1 keeps the image's size."""
        return self._convolve(x, name, channels, _sweep(kernel, stride, pad))

    def conv_with_bias(
        self, x: str, name: str, channels: int, kernel: Pair, stride: int = 1, pad: Pair | None = None
    ) -> str:
        return self._convolve(x, name, channels, _sweep(kernel, stride, pad), bias=True)

    def grouped_conv(self, x: str, name: str, channels: int, kernel: Pair, groups: int, stride: int = 1) -> str:
        """Each group of channels by itself."""
        return self._convolve(x, name, channels, _sweep(kernel, stride, None), groups)

    def depthwise_conv(self, x: str, name: str, kernel: int) -> str:
        """Each channel by itself, with a bias."""
        channels = self.shapes[x][1]
        return self._convolve(x, name, channels, _sweep(kernel, 1, None), channels, bias=True)

    def _convolve(self, x: str, name: str, channels: int, sweep: _Sweep, groups: int = 1, bias: bool = False) -> str:
        batch, before, *image = self.shapes[x]
        shape = (channels, before // groups, *sweep.kernel)
        inputs = [x, self.weight(f"{name}.weight", shape, std=math.sqrt(2 / math.prod(shape[1:])))]
        if bias:
            inputs.append(self.weight(f"{name}.bias", (channels,)))
        sizes = zip(image, sweep.pads, sweep.kernel)
        out = (batch, channels, *((n + 2 * p - k) // sweep.stride + 1 for n, p, k in sizes))
        strides, pads = [sweep.stride] * 2, [*sweep.pads] * 2
        return self.op(
            "Conv", inputs, name, out, kernel_shape=[*sweep.kernel], strides=strides, pads=pads, group=groups
        )

    def conv_transpose(self, x: str, name: str, channels: int, kernel: int, stride: int, bias: bool) -> str:
        """The image becomes `stride` times as large."""
        batch, before, *image = self.shapes[x]
        pad = (kernel - stride) // 2
        std = math.sqrt(2 * stride * stride / (before * kernel * kernel))
        inputs = [x, self.weight(f"{name}.weight", (before, channels, kernel, kernel), std=std)]
        if bias:
            inputs.append(self.weight(f"{name}.bias", (channels,)))
        out = (batch, channels, *((n - 1) * stride + kernel - 2 * pad for n in image))
        return self.op(
            "ConvTranspose", inputs, name, out, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
        )

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
        outputs: dict[str, Shape] = {name: self.shapes[x]}
        if self.training:
            updated = [f"{name}.running_mean_updated", f"{name}.running_var_updated"]
            outputs |= dict.fromkeys(updated, size)
            self.statistics += updated
        mode = 1 if self.training else None
        self.node("BatchNormalization", inputs, outputs, epsilon=epsilon, momentum=momentum, training_mode=mode)
        return name

    def max_pool(self, x: str, name: str, kernel: int, stride: int, pad: int = 0) -> str:
        out = self._pooled(x, kernel, stride, pad)
        sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.op("MaxPool", [x], name, out, **sizes)

    def max_pool_indices(self, x: str, name: str) -> tuple[str, str]:
        """A 2x2 pool and where its maxima were, for `max_unpool`."""
        out = self._pooled(x, 2, 2, 0)
        places = f"{name}.indices"
        self.node("MaxPool", [x], {name: out, places: out}, kernel_shape=[2, 2], strides=[2, 2])
        return name, places

    def max_unpool(self, x: str, places: str, name: str) -> str:
        batch, channels, height, width = self.shapes[x]
        out = (batch, channels, 2 * height, 2 * width)
        return self.op("MaxUnpool", [x, places], name, out, kernel_shape=[2, 2], strides=[2, 2])

    def average_pool(self, x: str, name: str, kernel: int, stride: int, pad: int = 0) -> str:
        sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        out = self._pooled(x, kernel, stride, pad)
        return self.op("AveragePool", [x], name, out, count_include_pad=1, **sizes)

    def global_average_pool(self, x: str, name: str) -> str:
        return self.op("GlobalAveragePool", [x], name, (*self.shapes[x][:2], 1, 1))

    def upsample(self, x: str, name: str, mode: str) -> str:
        """Twice the height and the width, `mode` being nearest or linear."""
        batch, channels, height, width = self.shapes[x]
        scales = self.constant(f"{name}.scales", np.array([1, 1, 2, 2], np.float32))
        how = "asymmetric" if mode == "nearest" else "half_pixel"
        rounding = "floor" if mode == "nearest" else None
        return self.op(
            "Resize",
            [x, "", scales],
            name,
            (batch, channels, 2 * height, 2 * width),
            mode=mode,
            coordinate_transformation_mode=how,
            nearest_mode=rounding,
        )

    def linear(self, x: str, name: str, features: int, std: float | None = None) -> str:
        """A Gemm for matrices; its weight is [out, in], as PyTorch keeps it."""
        rows, before = self.shapes[x]
        weight = self.weight(f"{name}.weight", (features, before), std=std or math.sqrt(2 / before))
        return self.op("Gemm", [x, weight, self.weight(f"{name}.bias", (features,))], name, (rows, features), transB=1)

    def product(self, x: str, name: str, features: int, std: float) -> str:
        """A MatMul without a bias."""
        *leading, before = self.shapes[x]
        weight = self.weight(f"{name}.weight", (before, features), std=std)
        return self.op("MatMul", [x, weight], name, (*leading, features))

    def dense(self, x: str, name: str, features: int, std: float, shared: str | None = None) -> str:
        """A MatMul and an Add for sequences; its weight is [in, out], as GPT-2 keeps it. `shared`: whose weights."""
        *leading, before = self.shapes[x]
        whose = shared or name
        weight = self.weight(f"{whose}.weight", (before, features), std=std)
        product = self.op("MatMul", [x, weight], f"{name}.matmul", (*leading, features))
        return self.op("Add", [product, self.weight(f"{whose}.bias", (features,))], name, (*leading, features))

    def layer_norm(self, x: str, name: str, epsilon: float, shared: str | None = None) -> str:
        size, whose = self.shapes[x][-1:], shared or name
        inputs = [x, self.weight(f"{whose}.weight", size, fill=1.0), self.weight(f"{whose}.bias", size)]
        return self.op("LayerNormalization", inputs, name, self.shapes[x], axis=-1, epsilon=epsilon)

    def rms_norm(self, x: str, name: str, epsilon: float) -> str:
        """By the root of the mean square of the last axis, op by op as PyTorch exports it."""
        one = (*self.shapes[x][:-1], 1)
        mean = self.op(
            "ReduceMean",
            [self.multiply(x, x, f"{name}.square"), self.constant(f"{name}.axis", [-1])],
            f"{name}.mean",
            one,
        )
        root = self.op(
            "Sqrt", [self.add(mean, self.constant(f"{name}.epsilon", epsilon), f"{name}.more")], f"{name}.root", one
        )
        y = self.op("Div", [x, root], f"{name}.normal", self.shapes[x])
        return self.multiply(y, self.weight(f"{name}.weight", self.shapes[x][-1:], fill=1.0), name)

    def group_norm(self, x: str, name: str, groups: int, epsilon: float) -> str:
        """An InstanceNormalization of groups of channels, and a weight and a bias for each channel."""
        batch, channels, *image = self.shapes[x]
        ones, zeros = (
            self.constant(f"{name}.{what}", np.full(groups, what == "ones", np.float32)) for what in ("ones", "zeros")
        )
        y = self.reshape(x, f"{name}.groups", (batch, groups, channels // groups * math.prod(image)))
        y = self.op("InstanceNormalization", [y, ones, zeros], f"{name}.normal", self.shapes[y], epsilon=epsilon)
        y = self.reshape(y, f"{name}.channels", self.shapes[x])
        y = self.multiply(y, self.weight(f"{name}.weight", (channels, 1, 1), fill=1.0), f"{name}.scaled")
        return self.add(y, self.weight(f"{name}.bias", (channels, 1, 1)), name)

    def relu(self, x: str) -> str:
        return self.op("Relu", [x], f"{x}.relu", self.shapes[x])

    def relu6(self, x: str) -> str:
        return self.op("Clip", [x, *self._relu6_limits()], f"{x}.relu6", self.shapes[x])

    def swish(self, x: str) -> str:
        gate = self.op("Sigmoid", [x], f"{x}.sigmoid", self.shapes[x])
        return self.op("Mul", [x, gate], f"{x}.swish", self.shapes[x])

    def gelu(self, x: str, approximate: str = "none") -> str:
        return self.op("Gelu", [x], f"{x}.gelu", self.shapes[x], approximate=approximate)

    def add(self, a: str, b: str, name: str) -> str:
        return self.op("Add", [a, b], name, np.broadcast_shapes(self.shapes[a], self.shapes[b]))

    def multiply(self, a: str, b: str, name: str) -> str:
        return self.op("Mul", [a, b], name, np.broadcast_shapes(self.shapes[a], self.shapes[b]))

    def concat(self, parts: list[str], name: str, axis: int = 1) -> str:
        shape = list(self.shapes[parts[0]])
        shape[axis] = sum(self.shapes[part][axis] for part in parts)
        return self.op("Concat", parts, name, tuple(shape), axis=axis)

    def flatten(self, x: str, name: str = "flatten") -> str:
        batch, *rest = self.shapes[x]
        return self.op("Flatten", [x], name, (batch, math.prod(rest)), axis=1)

    def reshape(self, x: str, name: str, shape: Shape) -> str:
        """The batch stays as it is."""
        written = (0, *shape[1:]) if self.free_batch else shape  # 0: as before
        return self.op("Reshape", [x, self.constant(f"{name}.shape", np.array(written, np.int64))], name, shape)

    def for_each(self, x: str, name: str, shape: Shape) -> str:
        """Such a shape for each example of `x`, as a value."""
        if not self.free_batch:
            return self.constant(name, np.array((self.shapes[x][0], *shape), np.int64))
        batch = self.op("Shape", [x], f"{name}.batch", (1,), start=0, end=1)
        rest = self.constant(f"{name}.rest", np.array(shape, np.int64))
        return self.op("Concat", [batch, rest], name, (1 + len(shape),), axis=0)

    def transpose(self, x: str, name: str, order: list[int]) -> str:
        return self.op("Transpose", [x], name, tuple(self.shapes[x][axis] for axis in order), perm=order)

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
        return self.op("Dropout", [x, ratio, train], name, self.shapes[x], seed=self.seed + len(self.nodes))

    def _relu6_limits(self) -> tuple[str, str]:
        if "zero" not in self.shapes:
            self.constant("zero", 0.0)
            self.constant("six", 6.0)
        return "zero", "six"

    def _pooled(self, x: str, kernel: int, stride: int, pad: int) -> Shape:
        batch, channels, *image = self.shapes[x]
        return (batch, channels, *((n + 2 * pad - kernel) // stride + 1 for n in image))


def need_multiple(image: Pair, step: int, name: str) -> None:
    """Networks that halve an image and join the halves again need sizes that divide evenly."""
    if any(size % step for size in as_pair(image)):
        sizes = "x".join(map(str, dict.fromkeys(as_pair(image))))
        raise Usage(f"{name} needs an image size divisible by {step}, not {sizes}")
