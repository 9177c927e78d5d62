"""The memory that onnxruntime's CPU kernels allocate while they run, for when nothing can be measured.

Invariant: the formulas are those of the kernels (MLAS convolution, im2col, broadcast selection), and agree with what
`workspace` measures to the byte; an op without a formula counts as needing nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from profiles.signature import Operand, OpSignature, bits

ALIGNMENT = 256  # the arena hands out multiples of this
SEGMENT = 64 * 1024  # MLAS: bytes of unfolded image that one thread works on
THREADS = 2  # of the CPU that estimates assume


def scratch(signature: OpSignature, threads: int = THREADS) -> int:
    """Bytes held only while the op runs, in a session of so many threads."""
    count = FORMULAS.get(signature.op_type) if not signature.domain else None
    return count(signature, threads) if count else 0


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _conv(signature: OpSignature, threads: int) -> int:
    """Unfolded image: whole where filters outnumber the outputs, else a segment for each thread; none for 1x1."""
    weight, result = _given(signature, 1), signature.made[0]
    kernel, places = math.prod(weight.shape[2:]), math.prod(result.shape[2:])
    if kernel == 1 and not any(signature.options.get("pads", [])) and set(signature.options.get("strides", [1])) == {1}:
        return 0
    if weight.shape[0] // int(signature.options.get("group", 1)) > places:
        return _padded(4 * places * math.prod(weight.shape[1:]))
    return threads * SEGMENT


def _conv_transpose(signature: OpSignature, _: int) -> int:
    """The columns of one image and group, before they are folded into the result."""
    x, weight = _given(signature, 0), _given(signature, 1)
    return _padded(4 * math.prod(weight.shape[1:]) * math.prod(x.shape[2:]))


def _where(signature: OpSignature, _: int) -> int:
    """Each side is first selected by itself, at the shape that it and the condition have together."""
    condition = _given(signature, 0)
    total = 0
    for place in (1, 2):
        side = _given(signature, place)
        together = math.prod(np.broadcast_shapes(condition.shape, side.shape))
        total += _padded(together * bits(side.dtype) // 8)
    return total


def _log_softmax(signature: OpSignature, _: int) -> int:
    """Along any but the last axis the operand is transposed there and back."""
    x = _given(signature, 0)
    axis = int(signature.options.get("axis", -1))
    return 0 if axis % len(x.shape) == len(x.shape) - 1 else 2 * _padded(x.bytes)


def _einsum(signature: OpSignature, _: int) -> int:
    """Both operands are transposed, the second once more for the product, and the product is copied. This holds for the
    sums of convolutions' gradients; for other equations it may be too much."""
    pieces = [_given(signature, place).bytes for place in range(len(signature.inputs))]
    return sum(map(_padded, (*pieces, pieces[-1], signature.made[0].bytes)))


def _given(signature: OpSignature, place: int) -> Operand:
    tensor = signature.inputs[place]
    assert tensor is not None, f"{signature} lacks input {place}"
    return tensor


FORMULAS: dict[str, Callable[[OpSignature, int], int]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
    "LogSoftmax": _log_softmax,
    "Softmax": _log_softmax,
    "Where": _where,
}
