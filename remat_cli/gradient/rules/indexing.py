"""Gradients of ops that pick elements by index or put them there.

Invariant: an element picked several times gets the sum, whatever the threads; indices themselves have no gradient.
"""

from __future__ import annotations

import math
from typing import Any

import onnx

from remat_cli.gradient.exported import padding_of
from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor


def _gather(op: Taped, dy: Tensor) -> Tensor:
    axis = op.get("axis", 0) % op.x.rank
    indices = op.input(1)
    if (padding := padding_of(op.node)) is not None:
        dy = indices.equals(padding).reshape(*indices.shape, *[1] * (dy.rank - indices.rank)).where(0.0, dy)
    if indices.rank == 0 and (known := op.tape.constants.get(indices.name)) is not None:
        return _single(op.x, dy, axis, int(known) % op.x.shape[axis])
    rest = [*op.x.shape[:axis], *op.x.shape[axis + 1 :]]
    flat = dy.reshape(*op.x.shape[:axis], indices.size, *op.x.shape[axis + 1 :])
    rows = flat.transpose(axis, *range(axis), *range(axis + 1, flat.rank))
    summed = _add_up(rows, indices, op.x.shape[axis]).reshape(op.x.shape[axis], *rest)
    return summed.transpose(*range(1, axis + 1), 0, *range(axis + 1, summed.rank))


def _add_up(rows: Tensor, places: Tensor, count: int) -> Tensor:
    """So many rows, each the sum of the rows with its index. onnxruntime's ScatterND(add) would lose some, because its
    threads add to one row at the same time."""
    width = rows.size // max(1, places.size)
    wide = places.cast(onnx.TensorProto.INT32).reshape(places.size, 1).expand(places.size, width)
    return _put(rows.zeros(count, width), wide, rows.reshape(places.size, width), 0)


def _single(x: Tensor, dy: Tensor, axis: int, place: int) -> Tensor:
    """One known slice: zeros around it."""
    before, after = [0] * x.rank, [0] * x.rank
    before[axis], after[axis] = place, x.shape[axis] - place - 1
    return dy.reshape(*x.shape[:axis], 1, *x.shape[axis + 1 :]).pad(before, after)


def _put(zeros: Tensor, indices: Tensor, dy: Tensor, axis: int) -> Tensor:
    return dy.tape.op("ScatterElements", zeros, indices, dy, axis=axis, reduction="add")


def _gather_nd(op: Taped, dy: Tensor) -> Tensor:
    if op.get("batch_dims", 0):
        raise op.refuse("batch_dims is not handled")
    indices = op.input(1)
    depth = indices.shape[-1]
    sizes, integers = op.x.shape[:depth], op.tape.integers
    strides = [math.prod(sizes[place + 1 :]) for place in range(depth)]
    within = op.tape.op("Mod", indices, integers(sizes))  # negative indices count from the end
    places = op.tape.op("Mul", within, integers(strides)).sum([indices.rank - 1], keep=False)
    return _add_up(dy, places, math.prod(sizes)).reshape(*op.x.shape)


def _scatter_elements(op: Taped, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    axis = op.get("axis", 0)
    indices, updates = op.input(1), op.input(2)
    kept = dy
    if not _adds(op):
        kept = op.tape.op("ScatterElements", dy, indices, updates.zeros(*updates.shape), axis=axis)
    return kept, None, op.tape.op("GatherElements", dy, indices, axis=axis)


def _scatter_nd(op: Taped, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    indices, updates = op.input(1), op.input(2)
    kept = dy if _adds(op) else op.tape.op("ScatterND", dy, indices, updates.zeros(*updates.shape))
    return kept, None, op.tape.op("GatherND", dy, indices)


def _adds(op: Taped) -> bool:
    kind = op.get("reduction", "none")
    if kind not in ("none", "add"):
        raise op.refuse(f"its reduction '{kind}' is not handled")
    return kind == "add"


def _top_k(op: Taped, dy: Tensor | None, *_: Any) -> Tensor | None:
    return _put(op.x.zeros(*op.x.shape), op.output(1), dy, op.get("axis", -1)) if dy else None


RULES: dict[str, Any] = {
    "Gather": _gather,
    "GatherElements": lambda op, dy: _put(op.x.zeros(*op.x.shape), op.input(1), dy, op.get("axis", 0)),
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TopK": _top_k,
    "Trilu": lambda op, dy: op.tape.op("Trilu", dy, op.optional(1), upper=op.get("upper", 1)),
}
