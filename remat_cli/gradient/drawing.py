"""Random ops of the forward pass: what they draw is what the module draws, and each has a seed of its own.

ONNX Runtime's CPU kernels err twice. Its Bernoulli gives 1 with probability 1 - p, as ONNX's own definition of the op
does. Its Dropout begins each mask with consecutive seeds, so that the first elements stay the same for thousands of
steps. So a Bernoulli, and a Dropout of few elements, are written as numbers that are drawn and compared.

Invariant: a copy of what is written draws what the original does, because each draw has a seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import onnx
from onnx import helper

from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.tracing import TracerLike

Outputs = Sequence["Tensor | None"]
FEW_ELEMENTS = 1 << 12  # of a Dropout, so that drawing them apart takes next to no memory
SEEDS = 1 << 24  # seeds of float attributes that are told apart


def dropout(tracer: TracerLike, step: Taped, active: bool) -> Outputs | None:
    """Without training the identity; in training a mask, or the op with a seed where that has many elements."""
    training = bool(step.array(2, "training_mode")) if step.optional(2) else False
    ratio = float(step.array(1, "ratio")) if step.optional(1) else 0.5
    if not training or ratio == 0:
        return [step.x, _filled(step, True)]
    if not 0 < ratio <= 1:
        raise step.refuse(f"its ratio is {ratio:g}, and shares are between 0 and 1")
    if ratio == 1:
        with step.tape.recording():
            return [step.x * 0.0, _filled(step, False)]
    step.attributes["ratio"] = ratio
    if step.x.size <= FEW_ELEMENTS:
        mask = _drawn(step) > ratio
        y = mask.where(step.x * (1 / (1 - ratio)), 0.0)
        step.tape.step("Dropout", step.inputs, [y, mask], step.attributes)
        return [y, mask]
    if step.get("seed") is None:
        assert step.node is not None
        step.attributes["seed"] = zlib.crc32(step.name.encode()) & 0x7FFFFFFF
        step.node.attribute.append(helper.make_attribute("seed", step.attributes["seed"]))
    return None


def bernoulli(tracer: TracerLike, step: Taped, active: bool) -> Outputs:
    """1 where a number that is drawn is below the share, else 0: no gradient leads to the share, as in PyTorch."""
    given = step.get("dtype", step.x.dtype)
    return [(_drawn(step) < step.x.cast(onnx.TensorProto.FLOAT)).cast(given)]


def _drawn(step: Taped) -> Tensor:
    """Numbers between 0 and 1, one for each element of the step's input."""
    seed = step.get("seed")
    seed = zlib.crc32(step.name.encode()) if seed is None else int(seed)
    return step.tape.op("RandomUniform", shape=list(step.x.shape), seed=float(seed % SEEDS))


def _filled(step: Taped, kept: bool) -> Tensor:
    """The mask of all elements, or of none."""
    value = helper.make_tensor("kept", onnx.TensorProto.BOOL, [1], [kept])
    return step.tape.op("ConstantOfShape", step.tape.integers(step.x.shape), value=value)
