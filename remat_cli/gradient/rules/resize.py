"""Gradient of Resize: it is linear in each axis, so dy goes back through the transposed matrix of each.

Invariant: the matrices follow ONNX's definition of every mode that is not refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from remat_cli.gradient.rules.shape import along
from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor

# Where an output element lies among the input's: (place, scale, input size, output size) -> coordinate
COORDINATES: dict[str, Callable[[np.ndarray, float, int, int], np.ndarray]] = {
    "half_pixel": lambda i, scale, n, m: (i + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda i, scale, n, m: (i + 0.5) / scale - 0.5 if m > 1 else i * 0.0,
    "align_corners": lambda i, scale, n, m: i * (n - 1) / (m - 1) if m > 1 else i * 0.0,
    "asymmetric": lambda i, scale, n, m: i / scale,
    "half_pixel_symmetric": lambda i, scale, n, m: n / 2 * (1 - m / (scale * n)) + (i + 0.5) / scale - 0.5,
}
NEAREST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _resize(op: Taped, dy: Tensor) -> Tensor:
    if op.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise op.refuse("keep_aspect_ratio_policy is not handled")
    changed = [axis for axis in range(op.x.rank) if op.x.shape[axis] != op.y.shape[axis] or _scale(op, axis) != 1]
    matrices = {axis: _matrix(op, axis) for axis in changed}
    if (repeats := _repeats(op, matrices)) is not None:
        return dy.tape.op("AveragePool", dy, kernel_shape=repeats, strides=repeats) * float(np.prod(repeats))
    for axis, matrix in sorted(matrices.items(), reverse=True):
        dy = along(dy, axis, matrix.T)
    return dy


def _repeats(op: Taped, matrices: dict[int, np.ndarray]) -> list[int] | None:
    """How often each spatial element is repeated, if that is all that happens."""
    if not matrices or op.x.rank < 3 or min(matrices) < 2:
        return None
    counts = []
    for axis in range(2, op.x.rank):
        size = op.x.shape[axis]
        count = op.y.shape[axis] // size
        if axis in matrices and not np.array_equal(matrices[axis], np.repeat(np.eye(size), count, axis=0)):
            return None
        counts.append(count)
    return counts


def _scale(op: Taped, axis: int) -> float:
    axes = [given % op.x.rank for given in op.get("axes") or range(op.x.rank)]
    given = op.array(2, "scales") if op.optional(2) is not None and op.input(2).size else None
    if given is not None:
        return float(given[axes.index(axis)]) if axis in axes else 1.0
    return op.y.shape[axis] / op.x.shape[axis]


def _matrix(op: Taped, axis: int) -> np.ndarray:
    """One row for each output element: what it takes of each input element."""
    n, m = op.x.shape[axis], op.y.shape[axis]
    op.tape.check_size(f"Resize node '{op.name}'", n, max(n, m))
    place = op.get("coordinate_transformation_mode", "half_pixel")
    if place not in COORDINATES:
        raise op.refuse(f"coordinate_transformation_mode '{place}' is not handled")
    at = COORDINATES[place](np.arange(m, dtype=np.float64), _scale(op, axis), n, m)
    mode = op.get("mode", "nearest")
    if mode == "nearest":
        chosen = NEAREST[op.get("nearest_mode", "round_prefer_floor")](at)
        return np.asarray(np.eye(n)[np.clip(chosen, 0, n - 1).astype(int)])
    if op.get("antialias", 0):
        return _stretch(op, axis, at, n, mode)
    if mode == "linear":
        return _linear(np.clip(at, 0, n - 1), n)
    return _cubic(at, n, op.get("cubic_coeff_a", -0.75), bool(op.get("exclude_outside", 0)))


def _linear(at: np.ndarray, n: int) -> np.ndarray:
    low = np.floor(at).astype(int)
    share = (at - low)[:, None]
    return np.asarray(np.eye(n)[low] * (1 - share) + np.eye(n)[np.minimum(low + 1, n - 1)] * share)


def _stretch(op: Taped, axis: int, at: np.ndarray, n: int, mode: str) -> np.ndarray:
    """Kernels as wide as what is shrunk to one element; what they reach outside is the edge, or left out."""
    scale = min(1.0, _scale(op, axis))
    reach = int(np.ceil(2 / scale)) + 1
    places = np.arange(-reach, n + reach)
    away = np.abs(places - at[:, None]) * scale
    weights = np.maximum(1 - away, 0) if mode == "linear" else _keys(away, op.get("cubic_coeff_a", -0.75))
    if op.get("exclude_outside", 0):
        weights = weights * ((places >= 0) & (places < n))
    edge = np.eye(n)[np.clip(places, 0, n - 1)]
    return np.asarray(weights @ edge / weights.sum(axis=1, keepdims=True))


def _cubic(at: np.ndarray, n: int, a: float, exclude: bool) -> np.ndarray:
    """Keys' kernel over four neighbours; those outside are the edge, or left out."""
    low = np.floor(at)
    matrix = np.zeros((len(at), n))
    for offset in range(-1, 3):
        index = low + offset
        weight = _keys(np.abs(at - index), a)
        if exclude:
            weight = weight * ((index >= 0) & (index < n))
        matrix[np.arange(len(at)), np.clip(index, 0, n - 1).astype(int)] += weight
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True)) if exclude else matrix


def _keys(t: np.ndarray, a: float) -> np.ndarray:
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return np.asarray(np.where(t <= 1, near, np.where(t < 2, far, 0.0)))


RULES: dict[str, Any] = {"Resize": _resize}
