"""Gradients of pooling.

Invariant: a maximum's gradient goes to the one element that the forward pass chose, ties included.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from remat_cli.gradient.rules.shape import Window, window
from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor


def _max_pool(op: Taped, dy: Tensor | None, *_: Any) -> Tensor | None:
    if dy is None:
        return None
    if op.get("storage_order", 0):
        raise op.refuse("storage_order 1 is not handled")
    place = window(op, op.x.shape[2:], tuple(op.get("kernel_shape")))
    apart = all(s > reach for s, reach in zip(place.strides, place.reach))  # no element is chosen twice then
    flat = [tensor.reshape(-1) for tensor in (op.x.zeros(op.x.size), op.output(1), dy)]
    return op.tape.op("ScatterElements", *flat, axis=0, reduction=None if apart else "add").reshape(*op.x.shape)


def _max_unpool(op: Taped, dy: Tensor) -> Tensor:
    indices = op.input(1)
    if op.optional(2) is not None:
        raise op.refuse("an output_shape is not handled")
    return op.tape.op("GatherElements", dy.reshape(-1), indices.reshape(-1), axis=0).reshape(*op.x.shape)


def _average_pool(op: Taped, dy: Tensor) -> Tensor:
    place = window(op, op.x.shape[2:], tuple(op.get("kernel_shape")))
    counts = _counts(place, dy.shape[2:], bool(op.get("count_include_pad", 0)))
    whole = counts.min() == counts.max()
    scaled = dy * (1 / float(counts.flat[0])) if whole else dy / op.tape.constant(counts[None, None], dy.dtype)
    if place.kernel == place.size and scaled.size == math.prod(op.x.shape[:2]):
        return scaled.expand(*op.x.shape)
    return _spread(scaled, op.x, place)


def _counts(place: Window, out: tuple[int, ...], padded: bool) -> np.ndarray:
    """How many elements each window averages. Those past the padding at the far end never count."""
    found = np.ones(out, np.int64)
    for axis, (size, kernel, s, d, before, after) in enumerate(
        zip(place.size, place.kernel, place.strides, place.dilations, place.before, place.after)
    ):
        low, high = (-before, size + after) if padded else (0, size)
        row = [sum(low <= y * s - before + d * k < high for k in range(kernel)) for y in range(out[axis])]
        found *= np.reshape(row, [-1 if i == axis else 1 for i in range(len(out))])
    return found


def _spread(dy: Tensor, x: Tensor, place: Window) -> Tensor:
    """Each element of dy added to its whole window."""
    channels = x.shape[1]
    extra = place.left_over(dy.shape[2:])
    # in ceil_mode, windows reach past the end
    after = tuple(pad - min(more, 0) for pad, more in zip(place.after, extra))
    x.tape.check_size("the gradient of a pooling", channels, *place.kernel)
    ones = x.tape.constant(np.ones((channels, 1, *place.kernel)), x.dtype)
    return x.tape.op(
        "ConvTranspose",
        dy,
        ones,
        group=channels,
        kernel_shape=list(place.kernel),
        strides=list(place.strides),
        dilations=list(place.dilations),
        pads=[*place.before, *after],
        output_padding=[max(more, 0) for more in extra],
    )


def _global_max(op: Taped, dy: Tensor) -> Tensor:
    """The first of equals takes all, as with MaxPool."""
    flat = op.x.reshape(*op.x.shape[:2], -1)
    first = flat.apply("ArgMax", axis=2)
    zeros = op.x.zeros(*flat.shape)
    return op.tape.op("ScatterElements", zeros, first, dy.reshape(*first.shape), axis=2).reshape(*op.x.shape)


RULES: dict[str, Any] = {
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
    "AveragePool": _average_pool,
    "GlobalMaxPool": _global_max,
    "GlobalAveragePool": lambda op, dy: (dy * (1 / math.prod(op.x.shape[2:]))).expand(*op.x.shape),
}
