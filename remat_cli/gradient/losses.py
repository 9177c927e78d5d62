"""Losses laid on top of a model's output, and their gradients.

Invariant: labels are never expanded to one-hot rows: the softmax is corrected in place at the labels.
"""

from __future__ import annotations

from typing import Any

import onnx

from remat_cli.errors import BadInput
from remat_cli.gradient.tape import FLOATS, Taped
from remat_cli.gradient.tensor import Tensor

HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
IGNORED = -100  # the label that PyTorch leaves out by default


def cross_entropy(
    logits: Tensor,
    labels: Tensor,
    axis: int,
    weights: Tensor | None = None,
    ignored: int | None = IGNORED,
    reduction: str = "mean",
) -> list[Tensor]:
    """The loss and the log-softmax; the given axis holds the classes."""
    tape = logits.tape
    axis %= logits.rank
    logs = tape.op("LogSoftmax", logits, axis=axis)
    loss, share, index = likelihood(logs, labels, axis, weights, ignored, reduction)
    places = index.shape
    saved = {"logs": logs, "index": index, "share": share, "axis": axis, "places": places}
    outputs = (
        [loss] if logs.name in tape.recorded else [loss, logs]
    )  # the model may have computed this log-softmax itself
    tape.step("cross-entropy", [logits, labels], outputs, {"reduction": reduction}, **saved)
    return [loss, logs]


def likelihood(
    logs: Tensor, labels: Tensor, axis: int, weights: Tensor | None, ignored: int | None, reduction: str
) -> tuple[Tensor, Tensor | float, Tensor]:
    """The loss, the share of it that each place's own loss has, and the index of each label along the axis."""
    if labels.shape != (*logs.shape[:axis], *logs.shape[axis + 1 :]):
        raise BadInput(
            f"labels of shape {list(labels.shape)} do not fit logits of shape {list(logs.shape)}, "
            f"whose axis {axis} holds the classes"
        )
    labels = labels.cast(onnx.TensorProto.INT64)
    absent = labels.equals(ignored) if ignored is not None else None
    known = absent.where(0, labels) if absent else labels
    index = known.reshape(*logs.shape[:axis], 1, *logs.shape[axis + 1 :])
    picked = logs.tape.op("GatherElements", logs, index, axis=axis).reshape(*labels.shape)
    return *_reduce(-picked, _weights(logs, known, absent, weights), reduction), index


def _weights(logits: Tensor, known: Tensor, absent: Tensor | None, weights: Tensor | None) -> Tensor | None:
    weight = logits.tape.op("Gather", weights, known, axis=0) if weights else None
    if absent is None:
        return weight
    return absent.where(0.0, weight if weight else logits.like(1.0))


def _reduce(losses: Tensor, weight: Tensor | None, reduction: str) -> tuple[Tensor, Tensor | float]:
    """The loss, and the share of it that each place's own loss has."""
    everywhere = list(range(losses.rank))
    weighted = losses * weight if weight else losses
    if reduction == "none":
        return weighted, weight if weight else 1.0
    if reduction == "sum":
        return weighted.sum(everywhere, keep=False), weight if weight else 1.0
    if weight is None:
        return losses.mean(everywhere, keep=False), 1 / losses.size
    share = weight / weight.sum(everywhere)
    return (losses * share).sum(everywhere, keep=False), share


def _cross_entropy_back(op: Taped, dy: Tensor | None, by_logs: Tensor | None = None) -> Tensor | None:
    """share * dy * (softmax - one-hot)"""
    logs, index, axis, places = (op.saved[key] for key in ("logs", "index", "axis", "places"))
    found: Tensor | None = None
    if dy is not None:
        factor = _factor(op, dy).expand(*places[:axis], *places[axis + 1 :]).reshape(*places)
        softmax = logs.apply("Exp") * factor
        found = op.tape.op("ScatterElements", softmax, index, -factor, axis=axis, reduction="add")
    if by_logs is not None:
        extra = by_logs - logs.apply("Exp") * by_logs.sum([axis])
        found = found + extra if found else extra
    return found


def _factor(op: Taped, dy: Tensor) -> Tensor:
    share: Tensor | float = op.saved["share"]
    one = op.tape.constants.get(dy.name)
    if one is not None and one.size == 1 and float(one.reshape(())) == 1.0:
        return share if isinstance(share, Tensor) else dy.like(share)
    return dy * share


def mean_square(output: Tensor, target: Tensor) -> Tensor:
    """The mean of (output - target) squared."""
    difference = output - target
    loss = (difference * difference).mean(list(range(output.rank)), keep=False)
    output.tape.step("mse", [output, target], [loss], {}, difference=difference)
    return loss


def _mean_square_back(op: Taped, dy: Tensor) -> Tensor:
    difference: Tensor = op.saved["difference"]
    return difference * (dy * (2 / op.x.size))


def in_float32(output: Tensor) -> Tensor:
    """A half-precision output as float32, because a loss needs the range and runtimes have no half-precision kernels
    for it."""
    if output.dtype not in HALVES:
        return output
    with output.tape.recording():
        return output.cast(onnx.TensorProto.FLOAT)


def loss_with_labels(output: Tensor, loss: str, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The input that the loss compares with, and the loss."""
    if output.dtype not in FLOATS:
        raise BadInput(
            f"'{output.name}' is not a float tensor, so no loss can be taken of it; name another with --logits"
        )
    output = in_float32(output)
    if loss == "mse":
        target = output.tape.declare("target", output.dtype, output.shape)
        return target, mean_square(output, target)
    if output.rank < 2:
        raise BadInput(f"cross-entropy needs logits of rank 2 or more, but '{output.name}' is {list(output.shape)}")
    if not -output.rank <= axis < output.rank:
        raise BadInput(
            f"--class-axis {axis}: '{output.name}' is {list(output.shape)}, whose axes are 0 to {output.rank - 1}"
        )
    shape = [size for index, size in enumerate(output.shape) if index != axis % output.rank]
    labels = output.tape.declare("labels", onnx.TensorProto.INT64, shape)
    return labels, cross_entropy(output, labels, axis)[0]


RULES: dict[str, Any] = {"cross-entropy": _cross_entropy_back, "mse": _mean_square_back}
