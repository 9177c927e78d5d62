"""Gradients of softmax and of the normalizations, each in closed form.

Invariant: softmax differentiates from its output; normalizations keep their input and statistics of one number for each
group, never a normalized copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from remat_cli.gradient.rules.shape import along
from remat_cli.gradient.tape import Step
from remat_cli.gradient.tensor import Tensor


def _softmax(op: Step, dy: Tensor) -> Tensor:
    axis = op.get("axis", -1) % op.y.rank
    return op.y * (dy - (dy * op.y).sum([axis]))


def _log_softmax(op: Step, dy: Tensor) -> Tensor:
    axis = op.get("axis", -1) % op.y.rank
    return dy - op.y.apply("Exp") * dy.sum([axis])


def standardized(normal: Tensor, scale: Tensor, g: Tensor, axes: list[int]) -> Tensor:
    """The gradient by x, where normal = (x - mean) * scale has mean 0 and variance 1 over the axes."""
    return (g - g.mean(axes) - normal * (g * normal).mean(axes)) * scale


def _layer_norm(op: Step, dy: Tensor | None, *_: Any) -> list[Tensor | None] | None:
    if dy is None:
        return None
    axes = list(range(op.get("axis", -1) % op.x.rank, op.x.rank))
    mean, inverse = op.output(1).cast(dy.dtype), op.output(2).cast(dy.dtype)
    normal = (op.x - mean) * inverse
    scale = op.input(1)
    by_scale = (dy * normal).sum_to(scale.shape) if op.needs[1] else None
    by_bias = dy.sum_to(op.input(2).shape) if len(op.needs) > 2 and op.needs[2] else None
    return [standardized(normal, inverse, dy * scale, axes) if op.needs[0] else None, by_scale, by_bias]


def _frozen_batch_norm(op: Step, dy: Tensor, *_: Any) -> list[Tensor | None]:
    """y = (x - mean) * scale / sqrt(variance + epsilon) + bias, statistics given."""
    shape = (-1, *[1] * (op.x.rank - 2))
    _, scale, bias, mean, variance = (op.input(i) for i in range(5))
    inverse = 1 / (variance + op.get("epsilon", 1e-5)).apply("Sqrt")
    others = [0, *range(2, op.x.rank)]
    by_x = dy * (scale * inverse).reshape(*shape) if op.needs[0] else None
    by_scale = None
    if op.needs[1]:
        by_scale = (dy * (op.x - mean.reshape(*shape))).sum(others, keep=False) * inverse
    return [by_x, by_scale, dy.sum(others, keep=False).reshape(*bias.shape) if op.needs[2] else None]


def _batch_norm(op: Step, dy: Tensor, *_: Any) -> list[Tensor | None]:
    """dx = scale (dy - mean(dy) - centered mean(dy centered) / variance) / deviation, over images and places.

    With mean(dy) as the mean and variance as it was, BatchNormalization itself computes the last steps.
    """
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


def _dropout(op: Step, dy: Tensor, *_: Any) -> Tensor:
    """By the mask that the forward pass drew, kept as bool."""
    return dy * op.output(1).cast(dy.dtype) * (1 / (1 - op.attributes["ratio"]))


def _local_response(op: Step, dy: Tensor) -> Tensor:
    """y = x s ** -beta, where s = bias + alpha / size * (x * x summed over a band of channels)."""
    size, beta = op.get("size"), op.get("beta", 0.75)
    share = op.get("alpha", 1e-4) / size
    channels = op.x.shape[1]
    offset = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    band = (-((size - 1) // 2) <= offset) & (offset <= size // 2)
    s = along(op.x * op.x, 1, band * share) + op.get("bias", 1.0)
    shared = along(dy * op.y / s, 1, band.T * (2 * beta * share))
    return dy * op.tape.op("Pow", s, s.like(-beta)) - op.x * shared


RULES = {
    "Dropout": _dropout,
    "LRN": _local_response,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "LayerNormalization": _layer_norm,
    "BatchNormalization": _frozen_batch_norm,
    "BatchNormalization in training": _batch_norm,
}
