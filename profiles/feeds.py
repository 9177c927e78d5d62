"""Random operands that are valid for the op that reads them: indices in range, positive variances, moderate magnitudes.

Invariant: the operands depend on the signature and the seed alone, so two runs time the same work.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import helper

from profiles.signature import Operand, OpSignature

BLOCK = 65_521  # a prime, so that rows differ
ALIGNMENT = 64
# otherwise results are nan or inf
POSITIVE = frozenset({"Sqrt", "Log", "Reciprocal", "Pow", "Div", "RMSNormalization", "LRN"})
# inputs that are the share that is dropped, by position
SHARES = {("Dropout", 1), ("BiasDropout", 3), ("TrainableDropout", 1)}
VARIANCES = {  # inputs that are variances or their like, by position
    "BatchNormalization": (3, 4),
    "BatchNormInternal": (3, 4),
    "BatchNormalizationGrad": (4,),
    "LayerNormalizationGrad": (4,),
}


def operands(signature: OpSignature, seed: int = 0) -> list[np.ndarray | None]:
    """One array for each input; None for those left out."""
    rng = np.random.default_rng(seed)
    return [
        None if tensor is None else _operand(signature, place, tensor, rng)
        for place, tensor in enumerate(signature.inputs)
    ]


def _operand(signature: OpSignature, place: int, tensor: Operand, rng: np.random.Generator) -> np.ndarray:
    known = tensor.value()
    if known is not None:
        whole = aligned(tensor)
        whole[...] = known
        return whole
    positive, share = needs_positive(signature, place), (signature.op_type, place) in SHARES
    return draw(tensor, rng, index_bound(signature, place) or 2, positive, share)


def draw(
    tensor: Operand, rng: np.random.Generator, bound: int = 2, positive: bool = False, share: bool = False
) -> np.ndarray:
    """An array of one tensor's type and shape; integers lie in [0, bound). `share`: numbers are at most a half."""
    whole = aligned(tensor)
    made = np.resize(_block(tensor, rng, bound, positive or share), tensor.count)  # drawing many numbers is slow
    whole.reshape(-1)[:] = (made / 2).astype(made.dtype) if share else made
    return whole


def aligned(tensor: Operand) -> np.ndarray:
    """An empty array at an address aligned like onnxruntime's own buffers: kernels are slower at others."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.dtype))
    if dtype.kind == "O":
        return np.empty(tensor.shape, dtype)
    room = np.empty(tensor.count * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    whole: np.ndarray = room[start : start + tensor.count * dtype.itemsize].view(dtype).reshape(tensor.shape)
    return whole


def _block(tensor: Operand, rng: np.random.Generator, bound: int, positive: bool) -> np.ndarray:
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.dtype))
    count = min(tensor.count, BLOCK)
    if dtype == np.bool_:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, max(1, bound), count).astype(dtype)
    if dtype.kind in "OSU":
        return np.full(count, "text", dtype=object)
    if positive:
        return rng.uniform(0.5, 1.5, count).astype(dtype)
    spread = 1.0 / math.sqrt(max(1, math.prod(tensor.shape[1:]))) if len(tensor.shape) >= 2 else 0.1
    return (rng.standard_normal(count, dtype=np.float32) * np.float32(spread)).astype(dtype)


def needs_positive(signature: OpSignature, place: int) -> bool:
    """Whether numbers below zero at this place make infinities or worse."""
    return signature.op_type in POSITIVE or place in VARIANCES.get(signature.op_type, ())


def index_bound(signature: OpSignature, place: int) -> int | None:
    """The upper bound of the indices that an op takes at this input; None where it takes no indices."""
    find = _BOUNDS.get((signature.op_type, place))
    return find(signature) if find else None


def _along_axis(signature: OpSignature) -> int:
    data = _shape(signature, 0)
    return data[int(signature.options.get("axis", 0))] if data else 2


def _first(signature: OpSignature) -> int:
    return min(_shape(signature, 0), default=2)


def _classes(signature: OpSignature) -> int:
    scores = _shape(signature, 0)
    return scores[1] if len(scores) > 1 else 2


def _classes_of_grad(signature: OpSignature) -> int:
    scores = _shape(signature, 1)
    return scores[1] if len(scores) > 1 else 2


def _pooled(signature: OpSignature) -> int:
    return math.prod(_shape(signature, 0)[2:]) * 2 if len(_shape(signature, 0)) > 2 else 2


def _depth(signature: OpSignature) -> int:
    depth = signature.inputs[1]
    value = depth.value() if depth else None
    return int(value.reshape(-1)[0]) if value is not None and value.size else 2


def _rows_of_weight(signature: OpSignature) -> int:
    weight = signature.made[0].shape if signature.made else ()
    return weight[0] if weight else 2


def _shape(signature: OpSignature, place: int) -> tuple[int, ...]:
    tensor = signature.inputs[place] if place < len(signature.inputs) else None
    return tensor.shape if tensor else ()


_BOUNDS: dict[tuple[str, int], Callable[[OpSignature], int]] = {
    ("Gather", 1): _along_axis,
    ("GatherElements", 1): _along_axis,
    ("GatherND", 1): _first,
    ("ScatterElements", 1): _along_axis,
    ("ScatterND", 1): _first,
    ("OneHot", 0): _depth,
    ("MaxUnpool", 1): _pooled,
    ("MaxPoolGrad", 1): _pooled,
    ("SoftmaxCrossEntropyLoss", 1): _classes,
    ("NegativeLogLikelihoodLoss", 1): _classes,
    ("SoftmaxCrossEntropyLossGrad", 2): _classes_of_grad,
    ("GatherGrad", 1): _rows_of_weight,
    ("EmbedLayerNormalization", 0): _first,
}
