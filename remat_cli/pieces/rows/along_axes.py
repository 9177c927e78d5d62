"""Ops that work along some axes, and on each place of the others by itself: normalization, reduction, recurrence."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from onnx import TensorProto

from remat_cli.pieces.ways import AlongAxis, Call, Row, Total, Way


def along_one(call: Call) -> Iterator[Way]:
    """Softmax and its like: every axis but the one that is named."""
    yield from _but(call, call.get("axis", -1) % len(call.read(0)))


def scan(call: Call) -> Iterator[Way]:
    """CumSum: the axis is an input."""
    if 1 in call.constants:
        yield from _but(call, int(call.constants[1].reshape(())) % len(call.read(0)))


def top(call: Call) -> Iterator[Way]:
    yield from _but(call, call.get("axis", -1) % len(call.read(0)))


def _but(call: Call, own: int) -> Iterator[Way]:
    for axis in range(len(call.read(0))):
        if axis != own:
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis))


def layer_norm(call: Call) -> Iterator[Way]:
    for axis in range(call.get("axis", -1) % len(call.read(0))):
        yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis))


def skip_norm(call: Call) -> Iterator[Way]:
    """Of images alike: the sum of two values is normalized along the last axis. Statistics stay whole."""
    if call.read(0) == call.read(1) and not any(call.makes[1:3]):
        for axis in range(len(call.read(0)) - 1):
            yield Way(f"axis {axis}", call.same(axis, 0, 1), call.results(axis, 0, 3))


def batch_norm(call: Call) -> Iterator[Way]:
    """With the statistics given; in training it takes them of the whole."""
    if call.get("training_mode", 0):
        return
    for axis in range(len(call.read(0))):
        inputs = (AlongAxis(1), *[AlongAxis(0)] * 4) if axis == 1 else call.same(axis, 0)
        yield Way(f"axis {axis}", inputs, call.results(axis, 0))


def instance_norm(call: Call) -> Iterator[Way]:
    yield Way("axis 0", call.same(0, 0), call.results(0), exact=False)
    yield Way("axis 1", (AlongAxis(1), AlongAxis(0), AlongAxis(0)), call.results(1), exact=False)


def reduction(call: Call) -> Iterator[Way]:
    axes = reduced_axes(call)
    if axes is None:
        return
    for axis in range(len(call.read(0))):
        if axis not in axes:
            made = axis if call.get("keepdims", 1) else axis - sum(other < axis for other in axes)
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(made), exact=_is_exact(call, axes))
        elif (total := _total(call, axes)) is not None:
            exact = total.op in ("Max", "Min")
            yield Way(f"sum {axis}", call.same(axis, 0), (None,), total, exact=exact)


def _is_exact(call: Call, axes: tuple[int, ...]) -> bool:
    """Whether the order of a sum is that of the whole: it may depend on where a row begins in memory."""
    shape = call.read(0)
    return call.op.op_type in ("ReduceMax", "ReduceMin") or len(shape) - 1 not in axes or shape[-1] % ALIGNED_ROW == 0


def reduced_axes(call: Call) -> tuple[int, ...] | None:
    """The axes that are gone; None where they are not known."""
    rank, axes = len(call.read(0)), call.get("axes")
    if axes is None and call.given(1):
        if 1 not in call.constants:
            return None
        axes = call.constants[1].tolist()
    if not axes:
        return () if call.get("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(axis % rank for axis in axes)


def _total(call: Call, axes: tuple[int, ...]) -> Total | None:
    match call.op.op_type:
        case "ReduceSum" | "ReduceSumSquare" | "ReduceL1":
            return Total("Add")
        case "ReduceMax":
            return Total("Max")
        case "ReduceMin":
            return Total("Min")
        case "ReduceMean" if call.dtypes[0] in (TensorProto.FLOAT, TensorProto.DOUBLE):  # others overflow as sums
            return Total("Add", runs="ReduceSum", over=prod(call.read(0)[axis] for axis in axes))
    return None


def arg(call: Call) -> Iterator[Way]:
    own = call.get("axis", 0) % len(call.read(0))
    for axis in range(len(call.read(0))):
        if axis != own:
            made = axis if call.get("keepdims", 1) or axis < own else axis - 1
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(made))


def recurrent(call: Call) -> Iterator[Way]:
    """Sequences apart: the second axis of what goes in and of states, the third of what comes out."""
    if call.get("layout", 0):
        return
    places: dict[int, int] = {0: 1, 4: 0, 5: 1, 6: 1}
    inputs = tuple(
        AlongAxis(places[place]) if place in places and call.given(place) else None for place in range(len(call.reads))
    )
    made = (2, 1, 1)
    outputs = tuple(AlongAxis(made[place]) if shape is not None else None for place, shape in enumerate(call.makes))
    yield Way("batch", inputs, outputs, least=2, exact=False)


ALIGNED_ROW = 64  # elements of a row that is a multiple of any alignment
REDUCES = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

ROWS: dict[tuple[str, str], Row] = {
    **{("", name): along_one for name in ("Hardmax", "LogSoftmax", "LpNormalization", "Softmax")},
    **{("", f"Reduce{name}"): reduction for name in REDUCES},
    **{("", name): recurrent for name in ("GRU", "LSTM", "RNN")},
    ("", "ArgMax"): arg,
    ("", "ArgMin"): arg,
    ("", "BatchNormalization"): batch_norm,
    ("", "CumSum"): scan,
    ("", "InstanceNormalization"): instance_norm,
    ("", "LayerNormalization"): layer_norm,
    ("", "RMSNormalization"): layer_norm,
    ("", "TopK"): top,
    ("com.microsoft", "SkipLayerNormalization"): skip_norm,
}
