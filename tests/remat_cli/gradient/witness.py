"""Forward passes in float64, for ops that ONNX's reference computes in float32 or wrongly."""

from __future__ import annotations

import math

import numpy as np


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def group_norm(x: np.ndarray, scale: np.ndarray, bias: np.ndarray, groups: int) -> np.ndarray:
    grouped = x.reshape(x.shape[0], groups, -1)
    centered = grouped - grouped.mean(2, keepdims=True)
    normal = (centered / np.sqrt((centered**2).mean(2, keepdims=True) + 1e-5)).reshape(x.shape)
    wide = [-1] + [1] * (x.ndim - 2)
    repeats = x.shape[1] // len(scale)
    return normal * np.repeat(scale, repeats).reshape(wide) + np.repeat(bias, repeats).reshape(wide)


def standardized(x: np.ndarray) -> np.ndarray:
    centered = x - x.mean((0, 2, 3), keepdims=True)
    return centered / np.sqrt((centered**2).mean((0, 2, 3), keepdims=True))


def local_response(x: np.ndarray) -> np.ndarray:
    """size 3, alpha 0.5, beta 0.6, bias 1.5"""
    square = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return x / (1.5 + 0.5 / 3 * (square[:, :-2] + square[:, 1:-1] + square[:, 2:])) ** 0.6


def grouped_transposed(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Two groups, stride 2, one row and column of output padding."""
    out = np.zeros((x.shape[0], 2, w.shape[1], 2 * x.shape[2] + 2, 2 * x.shape[3] + 2))
    for a in range(x.shape[2]):
        for b in range(x.shape[3]):
            parts = x[:, :, a, b].reshape(x.shape[0], 2, -1), w.reshape(2, -1, *w.shape[1:])
            out[:, :, :, 2 * a : 2 * a + 3, 2 * b : 2 * b + 3] += np.einsum("ngi,gioyx->ngoyx", *parts)
    return out.reshape(x.shape[0], -1, *out.shape[3:])
