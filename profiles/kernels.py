"""The memory that onnxruntime's CPU kernels allocate while they run, for when nothing can be measured.

Invariant: the formulas are those of the kernels (MLAS convolution, im2col, broadcast selection), and never less than
what is measured; most agree to the byte. What has neither a formula nor a place among those that need nothing counts as
needing nothing, and `is_known` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from profiles.recurrent import gru, lstm, rnn
from profiles.signature import VIEWS, Operand, OpSignature, bits, padded

SEGMENT = 64 * 1024  # MLAS: bytes of unfolded image that one thread works on
THREADS = 2  # of the CPU that estimates assume
DOMAINS = ("", "ai.onnx", "com.microsoft")


def scratch(signature: OpSignature, threads: int = THREADS) -> int:
    """Bytes held only while the op runs, in a session of so many threads.

    An op whose operands or attributes are none that its kernel takes counts as needing nothing: it does not run.
    """
    count = FORMULAS.get(signature.op_type) if signature.domain in DOMAINS else None
    if count is None:
        return 0
    try:
        return count(signature, threads)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        return 0


def is_known(domain: str, op_type: str) -> bool:
    """Whether it is known what an op works in; if not, only a profile tells."""
    return domain in DOMAINS and (op_type in FORMULAS or op_type in NOTHING or op_type in VIEWS)


def _conv(signature: OpSignature, threads: int) -> int:
    """Unfolded image: whole where filters outnumber the outputs, else a segment for each thread; none for 1x1."""
    weight, result = _given(signature, 1), signature.made[0]
    places = math.prod(result.shape[2:])
    if _is_plain(signature, weight):
        return 0
    if weight.shape[0] // int(signature.options.get("group", 1)) > places:
        return padded(4 * places * math.prod(weight.shape[1:]))
    return threads * SEGMENT


def _conv_transpose(signature: OpSignature, _: int) -> int:
    """The columns of one image and group, before they are folded into the result."""
    x, weight = _given(signature, 0), _given(signature, 1)
    return padded(4 * math.prod(weight.shape[1:]) * math.prod(x.shape[2:]))


def _where(signature: OpSignature, _: int) -> int:
    """Each side is first selected by itself, at the shape that it and the condition have together."""
    condition = _given(signature, 0)
    total = 0
    for place in (1, 2):
        side = _given(signature, place)
        together = math.prod(np.broadcast_shapes(condition.shape, side.shape))
        total += padded(together * bits(side.dtype) // 8)
    return total


def _log_softmax(signature: OpSignature, _: int) -> int:
    """Along any but the last axis the operand is transposed there and back; before opset 13 axes were joined."""
    x = _given(signature, 0)
    axis = int(signature.options.get("axis", -1))
    last = signature.opset < 13 or axis % len(x.shape) == len(x.shape) - 1
    return 0 if last else 2 * padded(x.bytes)


def _einsum(signature: OpSignature, _: int) -> int:
    """Operands are transposed, the right one of a product once more, and the product is copied. A result whose axes
    stand in another order than the product's is transposed too. This is to the byte for the sums of convolutions'
    gradients, and an upper bound elsewhere."""
    sizes = [padded(tensor.bytes) for tensor in signature.given]
    made = padded(signature.made[0].bytes)
    if len(sizes) == 1:
        return sizes[0] + made
    if len(sizes) == 2:
        return sizes[0] + 2 * sizes[1] + made * (1 if _in_product_order(signature) else 2)
    return 2 * sum(sizes) + 2 * len(sizes) * max(made, _widest_product(signature))


def _terms(signature: OpSignature) -> tuple[list[str], str]:
    left, _, right = signature.options["equation"].decode().replace(" ", "").partition("->")
    return left.split(","), right


def _in_product_order(signature: OpSignature) -> bool:
    """Whether the result's axes stand as the product makes them: those of both operands, of the first, of the
    second."""
    (first, second), result = _terms(signature)
    if "..." in first + second + result or not result:
        return False
    order = [(axis not in first or axis not in second, axis not in first) for axis in result]
    return order == sorted(order)


def _widest_product(signature: OpSignature) -> int:
    """What the product of all operands could have at most: all axes that occur."""
    terms, _ = _terms(signature)
    if any("." in term for term in terms):
        return math.prod(tensor.bytes for tensor in signature.given)
    extents = {axis: size for term, x in zip(terms, signature.given, strict=True) for axis, size in zip(term, x.shape)}
    return padded(math.prod(extents.values()) * bits(signature.made[0].dtype) // 8)


def _sum_of_many(signature: OpSignature, _: int) -> int:
    """Operands are joined one after the other, each time into a new value, and the last time into the result."""
    *first, _last = signature.given
    if len(first) < 2:
        return 0
    return padded(math.prod(np.broadcast_shapes(*(x.shape for x in first))) * bits(first[0].dtype) // 8)


def _attention(signature: OpSignature, _: int) -> int:
    """The scores of all heads; and the mask, where it is made into numbers or joined with the causal one."""
    query, key = _given(signature, 0), _given(signature, 1)
    heads = query.shape[1] if len(query.shape) == 4 else int(signature.options["q_num_heads"])
    before = _maybe(signature, 4)
    keys = key.shape[-2] + (before.shape[-2] if before else 0)
    size = bits(query.dtype) // 8
    scores = padded(size * query.shape[0] * heads * query.shape[-2] * keys)
    mask, causal = _maybe(signature, 3), bool(signature.options.get("is_causal", 0))
    told = mask is not None and mask.dtype == _BOOL
    places = mask.count if mask is not None else query.shape[-2] * keys
    return scores + (padded(size * places) if told or causal or _maybe(signature, 6) else 0)


def _lrn(signature: OpSignature, _: int) -> int:
    """The scale of each element, and the squares of one image with as many channels more as the window reaches."""
    x = _given(signature, 0)
    channels = x.shape[1] + int(signature.options["size"]) - 1
    return padded(x.bytes) + padded(4 * channels * math.prod(x.shape[2:]))


def _mean_variance(signature: OpSignature, _: int) -> int:
    """Transposed there and back, unless the axes are the last ones."""
    x = _given(signature, 0)
    rank = len(x.shape)
    axes = sorted(axis % rank for axis in signature.options.get("axes", [0, 2, 3]))
    return 0 if axes == list(range(rank - len(axes), rank)) else 2 * padded(x.bytes)


def _batch_norm(signature: OpSignature, _: int) -> int:
    """In training: the mean and the variance that it saves."""
    return 2 * padded(_given(signature, 1).bytes) if signature.options.get("training_mode", 0) else 0


def _resize(signature: OpSignature, _: int) -> int:
    """Where in the image each row and column lies: four numbers each for images, six for other shapes."""
    mode, before, after = signature.options.get("mode", b"nearest"), _given(signature, 0).shape, signature.made[0].shape
    if signature.options.get("antialias", 0) and mode != b"nearest":
        return _smoothed(before, after, radius=1 if mode == b"linear" else 2)
    if mode != b"linear":
        return 0
    if len(after) != 4:
        return padded(24 * sum(after[-3:]))
    channels_last = before[-1] == after[-1] and before[1] != after[1]
    return padded(16 * sum(after[1:3] if channels_last else after[2:]))


def _smoothed(before: tuple[int, ...], after: tuple[int, ...], radius: int) -> int:
    """One image with its rows resized, and the weights of all places that each place of the result reads."""
    places = [(new, 2 * math.ceil(radius * max(1.0, old / new)) + 1) for old, new in zip(before, after, strict=True)]
    rows = math.prod(before[1:-1]) * after[-1]
    return padded(4 * rows) + sum(padded(4 * size * window) for size, window in places[-2:])


def _layer_norm(signature: OpSignature, _: int) -> int:
    """Half numbers' weights are made into whole ones."""
    weights = (signature.inputs[place] for place in range(1, len(signature.inputs)))
    return sum(padded(4 * weight.count) for weight in weights if weight is not None and weight.dtype == _HALF)


def _bias_gelu(signature: OpSignature, _: int) -> int:
    return padded(_given(signature, 0).bytes)


def _conv_integer(signature: OpSignature, _: int) -> int:
    """The unfolded image of one group."""
    weight, result = _given(signature, 1), signature.made[0]
    return 0 if _is_plain(signature, weight) else padded(math.prod(result.shape[2:]) * math.prod(weight.shape[1:]))


def _is_plain(signature: OpSignature, weight: Operand) -> bool:
    """Whether a convolution reads each place of the image once, where it lies."""
    moved = any(signature.options.get("pads", [])) or set(signature.options.get("strides", [1])) != {1}
    return math.prod(weight.shape[2:]) == 1 and not moved


def _qlinear_conv(signature: OpSignature, _: int) -> int:
    """The image, the result and the weights with channels last, the sums, and the unfolded image; where each channel
    has a kernel of its own, an address for each of its places instead."""
    x, weight, result = _given(signature, 0), _given(signature, 3), signature.made[0]
    places, filters = math.prod(result.shape[2:]), weight.shape[0]
    image = padded(math.prod(x.shape[1:])) + padded(filters * places) + padded(4 * filters * places)
    for_each = 8 if weight.shape[1] == 1 else weight.shape[1]
    unfolded = 0 if _is_plain(signature, weight) else padded(places * math.prod(weight.shape[2:]) * for_each)
    return image + padded(weight.count) + unfolded


def _qlinear_matmul(signature: OpSignature, _: int) -> int:
    """The sums before they are scaled."""
    return padded(4 * signature.made[0].count)


def _quantized_first(signature: OpSignature, _: int) -> int:
    return padded(_given(signature, 0).count)


def _given(signature: OpSignature, place: int) -> Operand:
    tensor = signature.inputs[place]
    assert tensor is not None, f"{signature} lacks input {place}"
    return tensor


def _maybe(signature: OpSignature, place: int) -> Operand | None:
    return signature.inputs[place] if place < len(signature.inputs) else None


_BOOL, _HALF = TensorProto.BOOL, TensorProto.FLOAT16

FORMULAS: dict[str, Callable[[OpSignature, int], int]] = {
    "Attention": _attention,
    "BatchNormalization": _batch_norm,
    "BiasGelu": _bias_gelu,
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "ConvTranspose": _conv_transpose,
    "DynamicQuantizeMatMul": _quantized_first,
    "Einsum": _einsum,
    "FusedConv": _conv,
    "GRU": gru,
    "Hardmax": _log_softmax,
    "LRN": _lrn,
    "LSTM": lstm,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _log_softmax,
    "Max": _sum_of_many,
    "Mean": _sum_of_many,
    "MeanVarianceNormalization": _mean_variance,
    "Min": _sum_of_many,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "RMSNormalization": _layer_norm,
    "RNN": rnn,
    "Resize": _resize,
    "SimplifiedLayerNormalization": _layer_norm,
    "Softmax": _log_softmax,
    "Sum": _sum_of_many,
    "Upsample": _resize,
    "Where": _where,
}

# fmt: off
NOTHING = frozenset({
    "Abs", "Acos", "Acosh", "Add", "AffineGrid", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh",
    "AveragePool", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip",
    "Col2Im", "Compress", "Concat", "Constant", "ConstantOfShape", "Cos", "Cosh", "CumSum", "DepthToSpace",
    "DequantizeLinear", "Det", "Div", "Dropout", "DynamicQuantizeLinear", "Elu", "Equal", "Erf", "Exp", "Expand",
    "EyeLike", "FastGelu", "Floor", "FusedMatMul", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm",
    "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "Greater", "GreaterOrEqual", "GridSample", "HannWindow",
    "HardSigmoid", "InstanceNormalization", "Inverse", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log",
    "LpNormalization", "LpPool", "MatMul", "MatMulInteger", "MatMulIntegerToFloat", "MaxPool", "MaxUnpool", "Mod",
    "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "PRelu", "Pad", "Pow", "QLinearAdd", "QuantizeLinear", "QuickGelu",
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Range", "Reciprocal", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare", "Relu", "ReverseSequence", "RoiAlign", "RotaryEmbedding", "Round", "ScatterElements",
    "ScatterND", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Size", "SkipLayerNormalization",
    "Slice", "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt", "Sub", "Tan", "Tanh", "ThresholdedRelu", "Tile",
    "TopK", "Transpose", "Trilu", "Unique", "Xor",
})
# fmt: on
