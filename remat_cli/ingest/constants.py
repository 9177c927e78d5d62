"""Constant folding of small tensors, as far as shapes are computed from them.

Invariant: `fold` answers only for ops in the table whose result is small; anything else is simply not constant. The ops
themselves stay in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper

from remat_cli.onnx_graph.attributes import attributes
from remat_cli.onnx_graph.stored import FOLDED_ELEMENTS

Array = np.ndarray[Any, Any]
Attributes = dict[str, Any]


def fold(
    node: onnx.NodeProto, types: Mapping[str, tuple[int, tuple[int, ...]]], constants: Mapping[str, Array]
) -> Array | None:
    """The content of the node's output, if it is a small constant of a kind that shapes are made of."""
    dtype, shape = types[node.output[0]]
    if node.domain not in ("", "ai.onnx") or prod(shape) > FOLDED_ELEMENTS:
        return None
    said = attributes(node)
    if node.op_type == "Shape":
        whole = types[node.input[0]][1]
        return np.array(whole[said.get("start", 0) : said.get("end")], np.int64)
    if node.op_type == "Size":
        return np.array(prod(types[node.input[0]][1]), np.int64)
    compute = FOLDS.get(node.op_type)
    if compute is None:
        return None
    try:
        with np.errstate(all="ignore"):
            result: Array = compute(said, [constants[name] for name in node.input])
            return np.asarray(result, helper.tensor_dtype_to_np_dtype(dtype)).reshape(shape)
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _divide(_: Attributes, a: Sequence[Array]) -> Array:
    """Integer division rounds towards zero, as in C."""
    quotient: Array = a[0] / a[1]
    if a[0].dtype.kind in "iu":
        quotient = np.sign(a[0]) * np.sign(a[1]) * (np.abs(a[0]) // np.abs(a[1]))
    return quotient


def _slice(_: Attributes, a: Sequence[Array]) -> Array:
    data, starts, ends = a[0], a[1].tolist(), a[2].tolist()
    axes = a[3].tolist() if len(a) > 3 else range(len(starts))
    steps = a[4].tolist() if len(a) > 4 else [1] * len(starts)
    cuts = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        whole = data.shape[axis]
        last = None if step < 0 and end < -whole else end
        cuts[axis] = slice(start, last, step)
    return data[tuple(cuts)]


def _axes(attributes: Attributes, a: Sequence[Array]) -> tuple[int, ...] | None:
    axes = a[1].tolist() if len(a) > 1 else attributes.get("axes")
    return None if axes is None else tuple(axes)


def _reshape(_: Attributes, a: Sequence[Array]) -> Array:
    sizes = [a[0].shape[i] if size == 0 else size for i, size in enumerate(a[1].tolist())]
    return a[0].reshape(sizes)


def _reduce(how: Callable[..., Array]) -> Callable[[Attributes, Sequence[Array]], Array]:
    return lambda attributes, a: how(a[0], axis=_axes(attributes, a), keepdims=bool(attributes.get("keepdims", 1)))


def _constant_of_shape(attributes: Attributes, a: Sequence[Array]) -> Array:
    fill = onnx.numpy_helper.to_array(attributes["value"])[0] if "value" in attributes else np.float32(0)
    return np.full(a[0].tolist(), fill)


FOLDS: dict[str, Callable[[Attributes, Sequence[Array]], Array]] = {
    "Abs": lambda _, a: np.abs(a[0]),
    "Add": lambda _, a: a[0] + a[1],
    "Cast": lambda _, a: a[0],
    "Ceil": lambda _, a: np.ceil(a[0]),
    "Concat": lambda at, a: np.concatenate(a, at["axis"]),
    "ConstantOfShape": _constant_of_shape,
    "Div": _divide,
    "Equal": lambda _, a: a[0] == a[1],
    "Expand": lambda _, a: np.broadcast_to(a[0], np.broadcast_shapes(a[0].shape, tuple(a[1].tolist()))),
    "Floor": lambda _, a: np.floor(a[0]),
    "Gather": lambda at, a: np.take(a[0], a[1], axis=at.get("axis", 0)),
    "Greater": lambda _, a: a[0] > a[1],
    "Identity": lambda _, a: a[0],
    "Less": lambda _, a: a[0] < a[1],
    "Max": lambda _, a: np.maximum.reduce(a),
    "Min": lambda _, a: np.minimum.reduce(a),
    "Mod": lambda _, a: np.mod(a[0], a[1]),
    "Mul": lambda _, a: a[0] * a[1],
    "Neg": lambda _, a: -a[0],
    "Not": lambda _, a: ~a[0],
    "Range": lambda _, a: np.arange(a[0].item(), a[1].item(), a[2].item()),
    "ReduceMax": _reduce(np.max),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": lambda at, a: np.squeeze(a[0], _axes(at, a)),
    "Sub": lambda _, a: a[0] - a[1],
    "Tile": lambda _, a: np.tile(a[0], a[1].tolist()),
    "Transpose": lambda at, a: np.transpose(a[0], at.get("perm")),
    "Unsqueeze": lambda at, a: np.expand_dims(a[0], _axes(at, a) or ()),
    "Where": lambda _, a: np.where(a[0], a[1], a[2]),
}
