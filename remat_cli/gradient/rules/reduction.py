"""Gradients of reductions and cumulative sums.

Invariant: `dy` and `y` are taken back to the rank of the input once, and broadcast from there.
"""

from __future__ import annotations

import math
from typing import Any

from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor


def axes_of(op: Taped) -> list[int]:
    """Normalized axes of a reduction; empty if it reduces nothing."""
    if op.optional(1) is not None:
        axes = [int(axis) for axis in op.array(1, "axes").reshape(-1)]
    else:
        axes = list(op.get("axes") or [])
    if not axes and not op.get("noop_with_empty_axes", 0):
        axes = list(range(op.x.rank))
    return [axis % op.x.rank for axis in axes]


def _keep_axes(op: Taped, tensor: Tensor) -> Tensor:
    """With the reduced axes put back as ones."""
    axes = axes_of(op)
    return tensor.reshape(*(1 if axis in axes else size for axis, size in enumerate(op.x.shape)))


def _mean(op: Taped, dy: Tensor) -> Tensor:
    return (_keep_axes(op, dy) * (1 / math.prod(op.x.shape[axis] for axis in axes_of(op)))).expand(*op.x.shape)


def _extreme(op: Taped, dy: Tensor) -> Tensor:
    """Equal extremes share the gradient evenly."""
    hits = op.x.equals(_keep_axes(op, op.y)).cast(dy.dtype)
    return hits * (_keep_axes(op, dy) / hits.sum(axes_of(op)))


def _prod(op: Taped, dy: Tensor) -> Tensor:
    """y / x, except where a zero leaves only the product of the others."""
    zero = op.x.equals(0.0)
    filled = zero.where(1.0, op.x)
    rest = filled.reduce("ReduceProd", axes_of(op))
    zeros = zero.cast(dy.dtype)
    count = zeros.sum(axes_of(op))
    others = count.equals(0.0).cast(dy.dtype) + zeros * count.equals(1.0).cast(dy.dtype)
    return _keep_axes(op, dy) * (rest / filled) * others


def _l2(op: Taped, dy: Tensor) -> Tensor:
    norm = _keep_axes(op, op.y)
    scaled = norm.equals(0.0).where(0.0, _keep_axes(op, dy) / norm)
    return op.x * scaled


def _cumsum(op: Taped, dy: Tensor) -> Tensor:
    backwards = 1 - op.get("reverse", 0)
    return op.tape.op("CumSum", dy, op.input(1), exclusive=op.get("exclusive", 0), reverse=backwards)


RULES: dict[str, Any] = {
    "ReduceSum": lambda op, dy: _keep_axes(op, dy).expand(*op.x.shape),
    "ReduceMean": _mean,
    "ReduceMax": _extreme,
    "ReduceMin": _extreme,
    "ReduceProd": _prod,
    "ReduceL1": lambda op, dy: op.x.apply("Sign") * _keep_axes(op, dy),
    "ReduceL2": _l2,
    "ReduceSumSquare": lambda op, dy: op.x * (_keep_axes(op, dy) * 2.0),
    "ReduceLogSum": lambda op, dy: (_keep_axes(op, dy) / _keep_axes(op, op.y).apply("Exp")).expand(*op.x.shape),
    "ReduceLogSumExp": lambda op, dy: (op.x - _keep_axes(op, op.y)).apply("Exp") * _keep_axes(op, dy),
    "CumSum": _cumsum,
}
