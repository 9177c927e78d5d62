"""Gradients of softmax and of the normalizations, each in closed form.

Invariant: softmax differentiates from its output; normalizations keep their input and statistics of one number for each
group, never a normalized copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from remat_cli.gradient.rules.shape import along
from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor


def _softmax(op: Taped, dy: Tensor) -> Tensor:
    axis = op.get("axis", -1) % op.y.rank
    return op.y * (dy - (dy * op.y).sum([axis]))


def _log_softmax(op: Taped, dy: Tensor) -> Tensor:
    axis = op.get("axis", -1) % op.y.rank
    return dy - op.y.apply("Exp") * dy.sum([axis])


def standardize(normal: Tensor, scale: Tensor, g: Tensor, axes: list[int]) -> Tensor:
    """The gradient by x, where normal = (x - mean) * scale has mean 0 and variance 1 over the axes."""
    return (g - g.mean(axes) - normal * (g * normal).mean(axes)) * scale


def _layer_norm(op: Taped, dy: Tensor | None, *others: Any) -> list[Tensor | None] | None:
    op.only_first(others)
    if dy is None:
        return None
    axes = list(range(op.get("axis", -1) % op.x.rank, op.x.rank))
    mean, inverse = op.output(1).cast(dy.dtype), op.output(2).cast(dy.dtype)
    normal = (op.x - mean) * inverse
    scale = op.input(1)
    by_scale = (dy * normal).sum_to(scale.shape) if op.needs[1] else None
    by_bias = dy.sum_to(op.input(2).shape) if len(op.needs) > 2 and op.needs[2] else None
    return [standardize(normal, inverse, dy * scale, axes) if op.needs[0] else None, by_scale, by_bias]


def _frozen_batch_norm(op: Taped, dy: Tensor, *_: Any) -> list[Tensor | None]:
    """y = (x - mean) * scale / sqrt(variance + epsilon) + bias, statistics given: the op itself scales dy and x."""
    x, scale, _bias, mean, variance = (op.input(i) for i in range(5))
    others, epsilon = [0, *range(2, x.rank)], op.get("epsilon", 1e-5)
    zeros, ones = (op.tape.constant([number] * x.shape[1], scale.dtype) for number in (0.0, 1.0))

    def normalize(tensor: Tensor, factor: Tensor, center: Tensor) -> Tensor:
        return op.tape.op("BatchNormalization", tensor, factor, zeros, center, variance, epsilon=epsilon)

    by_x = normalize(dy, scale, zeros.cast(mean.dtype)) if op.needs[0] else None
    by_scale = None
    if op.needs[1]:
        by_scale = (dy * normalize(x, ones, mean)).sum(others, keep=False).cast(scale.dtype)
    return [by_x, by_scale, dy.sum(others, keep=False).cast(scale.dtype) if op.needs[2] else None]


def _batch_norm(op: Taped, dy: Tensor, *statistics: Any) -> list[Tensor | None]:
    """dx = scale (dy - mean(dy) - centered mean(dy centered) / variance) / deviation, over images and places.

    With mean(dy) as the mean and variance as it was, BatchNormalization itself computes the last steps.
    """
    op.only_first(statistics)
    centered, variance = op.saved["centered"], op.saved["variance"]
    others = [0, *range(2, dy.rank)]
    count = dy.size // dy.shape[1]
    scale, epsilon = op.input(1), op.get("epsilon", 1e-5)
    by_bias = dy.sum(others, keep=False)
    moment = (dy * centered).sum(others, keep=False)
    varied = variance + epsilon
    by_scale = moment / varied.apply("Sqrt")
    by_x = None
    if op.needs[0]:
        lean = (moment / (varied * float(count))).reshape(-1, *[1] * (dy.rank - 2))
        zeros = op.tape.constant([0.0] * dy.shape[1], dy.dtype)
        straight = dy - centered * lean
        by_x = op.tape.op(
            "BatchNormalization", straight, scale, zeros, by_bias * (1 / count), variance, epsilon=epsilon
        )
    return [by_x, by_scale, by_bias]


def _dropout(op: Taped, dy: Tensor, *_: Any) -> Tensor:
    """By the mask that the forward pass drew, kept as bool."""
    ratio: float = op.attributes["ratio"]
    return dy * op.output(1).cast(dy.dtype) * (1 / (1 - ratio))


def _local_response(op: Taped, dy: Tensor) -> Tensor:
    """y = x s ** -beta, where s = bias + alpha / size * (x * x summed over a band of channels)."""
    size, beta = op.get("size"), op.get("beta", 0.75)
    share = op.get("alpha", 1e-4) / size
    channels = op.x.shape[1]
    op.tape.check_size(f"LRN node '{op.name}'", channels, channels)
    offset = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    band = (-((size - 1) // 2) <= offset) & (offset <= size // 2)
    s = along(op.x * op.x, 1, band * share) + op.get("bias", 1.0)
    shared = along(dy * op.y / s, 1, band.T * (2 * beta * share))
    return dy * op.tape.op("Pow", s, s.like(-beta)) - op.x * shared


def _instance_norm(op: Taped, dy: Tensor) -> list[Tensor | None]:
    x, scale = op.x, op.input(1)
    axes = list(range(2, x.rank))
    shape = (-1, *[1] * (x.rank - 2))
    inverse, centered = _deviation(x, axes, op.get("epsilon", 1e-5))
    normal = centered * inverse
    by_x = standardize(normal, inverse, dy * scale.reshape(*shape), axes) if op.needs[0] else None
    by_scale = (dy * normal).sum([0, *axes], keep=False) if op.needs[1] else None
    return [by_x, by_scale, dy.sum([0, *axes], keep=False) if op.needs[2] else None]


def _deviation(x: Tensor, axes: list[int], epsilon: float) -> tuple[Tensor, Tensor]:
    """1 / the standard deviation, and x less its mean."""
    centered = x - x.mean(axes)
    variance = (centered * centered).mean(axes)
    return 1 / (variance + epsilon).apply("Sqrt"), centered


def _rms_norm(op: Taped, dy: Tensor) -> list[Tensor | None]:
    """y = scale * x / sqrt(mean(x * x) + epsilon)"""
    x, scale = op.x, op.input(1)
    axes = list(range(op.get("axis", -1) % x.rank, x.rank))
    inverse = 1 / ((x * x).mean(axes) + op.get("epsilon", 1e-5)).apply("Sqrt")
    normal = x * inverse
    g = dy * scale
    by_x = (g - normal * (g * normal).mean(axes)) * inverse if op.needs[0] else None
    return [by_x, dy * normal if op.needs[1] else None]


def _lp_norm(op: Taped, dy: Tensor) -> Tensor:
    """y = x / norm; the norm's slope is y (p = 2) or the sign (p = 1)."""
    axis, p = op.get("axis", -1) % op.x.rank, op.get("p", 2)
    norm = op.x.reduce(f"ReduceL{p}", [axis])
    slope = op.y if p == 2 else op.x.apply("Sign")
    return (dy - slope * (dy * op.y).sum([axis])) / norm


RULES: dict[str, Any] = {
    "InstanceNormalization": _instance_norm,
    "RMSNormalization": _rms_norm,
    "LpNormalization": _lp_norm,
    "Dropout": _dropout,
    "LRN": _local_response,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "LayerNormalization": _layer_norm,
    "BatchNormalization": _frozen_batch_norm,
    "BatchNormalization in training": _batch_norm,
}
