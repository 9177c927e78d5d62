"""Gradients of convolutions: by the input a transposed convolution, by the weight a product over images and places.

Invariant: every form gives the same numbers up to rounding; which one is emitted depends on shapes alone, by the
measurements in docs/reference/gradients.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx

from remat_cli.gradient.rules.shape import Window, window
from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor

LARGE_PLACES = 400  # places of an image from which a flipped convolution beats a transposed one
COLUMNS = 3  # im2col may take this many of the largest forward value (any schedule holds a few of those),
SMALL_ELEMENTS = 1 << 16  # or this many elements


def _conv(op: Taped, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    x, w = op.input(0), op.input(1)
    place = window(op, x.shape[2:], w.shape[2:])
    groups = op.get("group", 1)
    return (
        _by_input(dy, w, place, groups) if op.needs[0] else None,
        _by_weight(x, dy, place, groups) if op.needs[1] else None,
        _by_bias(op, dy),
    )


def _conv_transpose(op: Taped, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradient by the input is a convolution of dy; the weight has the layout of that convolution."""
    x, w = op.input(0), op.input(1)
    place = _transpose_window(op, dy, x, w)
    groups = op.get("group", 1)
    by_x = None
    if op.needs[0]:
        by_x = op.tape.op("Conv", dy, w, **_options(place, groups))
    return by_x, _by_weight(dy, x, place, groups) if op.needs[1] else None, _by_bias(op, dy)


def _transpose_window(op: Taped, dy: Tensor, x: Tensor, w: Tensor) -> Window:
    """The window of the convolution that leads from the output's size back to the input's."""
    place = window(op, dy.shape[2:], w.shape[2:])
    extra = list(op.get("output_padding") or [0] * len(place.kernel))
    if op.get("output_shape") or op.get("auto_pad", "").startswith("SAME"):
        place = _pad_to_size(op, place, x.shape[2:], extra)
    if place.left_over(x.shape[2:]) != extra:
        raise op.refuse(f"its output has the size {list(dy.shape[2:])}, which its attributes do not explain")
    # Rows added at the far end see no window when they fit in a stride; otherwise the pad on that side shrinks.
    after = tuple(pad - max(0, more - s + 1) for pad, more, s in zip(place.after, extra, place.strides))
    return Window(place.size, place.kernel, place.strides, place.dilations, place.before, after)


def _pad_to_size(op: Taped, place: Window, source: tuple[int, ...], extra: list[int]) -> Window:
    """Pads that give the output its size; an odd one is at the end for SAME_UPPER and otherwise at the start."""
    spans = zip(source, place.strides, place.reach, extra, place.size)
    total = [(x - 1) * s + reach + 1 + more - y for x, s, reach, more, y in spans]
    if min(total) < 0:
        raise op.refuse("its output is larger than its input explains; export it with explicit pads")
    smaller, larger = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    before, after = (smaller, larger) if op.get("auto_pad", "") == "SAME_UPPER" else (larger, smaller)
    return Window(place.size, place.kernel, place.strides, place.dilations, before, after)


def _by_bias(op: Taped, dy: Tensor) -> Tensor | None:
    if len(op.needs) < 3 or not op.needs[2]:
        return None
    return dy.sum([0, *range(2, dy.rank)], keep=False)


def _options(place: Window, groups: int) -> dict[str, object]:
    """Attributes of a Conv, defaults left out."""
    ones = (1,) * len(place.kernel)
    return {
        "kernel_shape": list(place.kernel),
        "strides": list(place.strides) if place.strides != ones else None,
        "dilations": list(place.dilations) if place.dilations != ones else None,
        "pads": place.pads if any(place.pads) else None,
        "group": groups if groups != 1 else None,
    }


def _by_input(dy: Tensor, w: Tensor, place: Window, groups: int) -> Tensor:
    extra = place.left_over(dy.shape[2:])
    flippable = groups == 1 and set(place.strides) == {1} and not any(extra)
    if flippable and (set(place.kernel) == {1} or math.prod(dy.shape[2:]) >= LARGE_PLACES):
        return _by_flipped(dy, w, place)
    options = _options(place, groups)
    return dy.tape.op("ConvTranspose", dy, w, output_padding=extra if any(extra) else None, **options)


def _by_flipped(dy: Tensor, w: Tensor, place: Window) -> Tensor:
    """With stride 1, a convolution of dy by the weight turned around."""
    turned = w.swap(0, 1)
    axes = [2 + axis for axis, size in enumerate(place.kernel) if size > 1]
    if axes:
        bounds = ([-1] * len(axes), [-(2**31)] * len(axes), axes, [-1] * len(axes))
        turned = w.tape.op("Slice", turned, *map(w.tape.integers, bounds))
    before = tuple(reach - pad for reach, pad in zip(place.reach, place.before))
    after = tuple(reach - pad for reach, pad in zip(place.reach, place.after))
    if min(before + after) < 0:
        return dy.tape.op("ConvTranspose", dy, w, **_options(place, 1))
    sliding = Window(dy.shape[2:], place.kernel, place.strides, place.dilations, before, after)
    return dy.tape.op("Conv", dy, turned, **_options(sliding, 1))


def _by_weight(x: Tensor, dy: Tensor, place: Window, groups: int) -> Tensor:
    shape = (dy.shape[1], x.shape[1] // groups, *place.kernel)
    if groups > 1:
        return _by_convolution(x, dy, place, groups)
    if place.pointwise:
        return _product(_take_strides(x, place), dy).reshape(*shape)
    if _einsum(x) and place.untouched() and place.kernel == place.strides and set(place.dilations) == {1}:
        return _by_patches(x, dy, place).reshape(*shape)
    elements = x.shape[0] * x.shape[1] * math.prod(place.kernel) * math.prod(dy.shape[2:])
    if elements <= max(COLUMNS * x.tape.largest, SMALL_ELEMENTS):
        return _product(_columns(x, place, 0, place.kernel[0]), dy).reshape(*shape)
    return _by_rows(x, dy, place)


def _einsum(x: Tensor) -> bool:
    """Einsum is not defined on bfloat16."""
    return x.dtype != onnx.TensorProto.BFLOAT16


def _columns(x: Tensor, place: Window, first: int, last: int) -> Tensor:
    """The windows' elements of some kernel rows as channels (im2col), by a convolution with unit kernels."""
    size = math.prod(place.kernel)
    row = size // place.kernel[0]
    x.tape.check_size("the gradient of a convolution", size, size, x.shape[1])
    units = np.eye(size)[first * row : last * row].reshape(-1, 1, *place.kernel)
    repeated = np.tile(units, (x.shape[1], *[1] * (x.rank - 1)))
    return x.tape.op("Conv", x, x.tape.constant(repeated, x.dtype), **_options(place, x.shape[1]))


def _by_rows(x: Tensor, dy: Tensor, place: Window) -> Tensor:
    """One product for each row of the kernel, for less memory at a time."""
    parts = []
    for row in range(place.kernel[0]):
        found = _product(_columns(x, place, row, row + 1), dy)
        parts.append(found.reshape(dy.shape[1], x.shape[1], 1, *place.kernel[1:]))
    return x.tape.op("Concat", *parts, axis=2)


def _by_patches(x: Tensor, dy: Tensor, place: Window) -> Tensor:
    """Windows side by side: a matter of reshaping."""
    for axis, (size, stride) in enumerate(zip(dy.shape[2:], place.strides)):
        x = x.slice(2 + axis, 0, size * stride)
    sizes = [part for pair in zip(dy.shape[2:], place.kernel) for part in pair]
    outer, inner = "uvw"[: len(place.kernel)], "xyz"[: len(place.kernel)]
    mixed = "".join(a + b for a, b in zip(outer, inner))
    equation = f"nk{outer},nc{mixed}->kc{inner}"
    return x.tape.op("Einsum", dy, x.reshape(*x.shape[:2], *sizes), equation=equation)


def _take_strides(x: Tensor, place: Window) -> Tensor:
    """The elements that a pointwise convolution reads, sliced first, so that nothing larger is made."""
    for axis, stride in enumerate(place.strides):
        if stride != 1:
            x = x.slice(2 + axis, 0, x.shape[2 + axis], stride)
    return x


def _product(x: Tensor, dy: Tensor) -> Tensor:
    """Sum over images and places of dy[k] * x[c]; the smaller of both is transposed."""
    images, channels, filters = x.shape[0], x.shape[1], dy.shape[1]
    rows, columns = dy.reshape(images, filters, -1), x.reshape(images, channels, -1)
    if images == 1:
        return dy.tape.op("Gemm", rows.reshape(filters, -1), columns.reshape(channels, -1), transB=1)
    # one product for each image would be larger
    if _einsum(x) and filters * channels > (filters + channels) * rows.shape[2]:
        return dy.tape.op("Einsum", rows, columns, equation="nkp,ncp->kc")
    if filters < channels:
        return (columns @ rows.transposed).sum([0], keep=False).transposed
    return (rows @ columns.transposed).sum([0], keep=False)


def _by_convolution(x: Tensor, dy: Tensor, place: Window, groups: int) -> Tensor:
    """Images as channels, channels as images; dy is the kernel, strides and dilations exchanged."""
    images, channels, rank = x.shape[0], x.shape[1], x.rank
    swapped = [1, 0, *range(2, rank)]
    if groups == 1:
        turned = x.transpose(*swapped)
    else:
        apart = x.reshape(images, groups, channels // groups, *x.shape[2:])
        turned = apart.transpose(2, 1, 0, *range(3, rank + 1))
        turned = turned.reshape(channels // groups, groups * images, *x.shape[2:])
    sliding = Window(place.size, dy.shape[2:], place.dilations, place.strides, place.before, place.after)
    found = x.tape.op("Conv", turned, dy.transpose(*swapped), **_options(sliding, groups))
    for axis, size in enumerate(place.kernel):
        found = found.slice(2 + axis, 0, size)
    return found.transpose(*swapped)


RULES: dict[str, Any] = {"Conv": _conv, "ConvTranspose": _conv_transpose}
