"""FLOPs and bytes of an op, counted from its signature.

Invariant: exact for every op in the tables. One FLOP is one addition, subtraction, multiplication, division, maximum,
comparison, square root or call of a transcendental function, on one element; a multiply-add is two. Moving,
converting and choosing elements (Transpose, Cast, Gather, Where) are none. Bytes are what must cross the memory bus
once: operands read, results written; an op that touches part of an operand is charged for that part.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from profiles.signature import VIEWS, Operand, OpSignature

Count = Callable[[OpSignature], int]


def flops(signature: OpSignature) -> int | None:
    """How many FLOPs; None for an op that has no formula here, or not the inputs and attributes of its schema."""
    count = FORMULAS.get(signature.op_type)
    try:
        return count(signature) if count else None
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        return None


def traffic(signature: OpSignature) -> int:
    """How many bytes are read and written."""
    kind = signature.op_type
    if kind in VIEWS or kind in ("Shape", "Size", "Constant"):
        return 0
    written = sum(tensor.bytes for tensor in signature.made)
    if kind in _PARTIAL_READS:  # as much of the data as is written, and the indices
        return 2 * written + sum(tensor.bytes for tensor in signature.given[1:])
    if kind in _SCATTERS:  # the data copied, then the updates read and added in
        return 2 * written + sum(tensor.bytes for tensor in signature.given[1:])
    return written + sum(tensor.bytes for tensor in signature.given)


_PARTIAL_READS = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "MaxUnpool"})
_SCATTERS = frozenset({"ScatterElements", "ScatterND", "Scatter"})


def _each(times: int) -> Count:
    """So many for each element of the first output."""
    return lambda signature: times * _out(signature).count


def _each_in(times: int, place: int = 0) -> Count:
    """So many for each element of an input."""
    return lambda signature: times * _in(signature, place).count


def _none(signature: OpSignature) -> int:
    return 0


def _in(signature: OpSignature, place: int) -> Operand:
    tensor = signature.inputs[place]
    assert tensor is not None, f"{signature} lacks input {place}"
    return tensor


def _out(signature: OpSignature) -> Operand:
    return signature.made[0]


def _has(signature: OpSignature, place: int) -> bool:
    return place < len(signature.inputs) and signature.inputs[place] is not None


def _variadic(signature: OpSignature) -> int:
    return max(0, len(signature.given) - 1) * _out(signature).count


def _mean(signature: OpSignature) -> int:
    return _variadic(signature) + _out(signature).count


def _conv(signature: OpSignature) -> int:
    """2 * outputs * (C / groups) * kernel, and the bias."""
    weight = _in(signature, 1).shape
    outputs = _out(signature).count
    return 2 * outputs * math.prod(weight[1:]) + (outputs if _has(signature, 2) else 0)


def _conv_transpose(signature: OpSignature) -> int:
    """Every input element meets (M / groups) * kernel weights; then the bias."""
    weight = _in(signature, 1).shape
    bias = _out(signature).count if _has(signature, 2) else 0
    return 2 * _in(signature, 0).count * math.prod(weight[1:]) + bias


def _conv_grad(met: int) -> Count:
    """Inputs dY, X, W: a convolution for each of dX and dW asked for, in which each element at `met` meets the weights
    that it met forward; and a sum for dB."""

    def count(signature: OpSignature) -> int:
        dy, weight = _in(signature, 0), _in(signature, 2).shape
        asked = [len(signature.outputs) > place and signature.outputs[place] is not None for place in range(3)]
        products = 2 * _in(signature, met).count * math.prod(weight[1:])
        return products * (asked[0] + asked[1]) + (dy.count if asked[2] else 0)

    return count


def _matmul(signature: OpSignature) -> int:
    """2 * outputs * K, scaled if alpha is not 1."""
    a = _in(signature, 0).shape
    transposed = bool(signature.options.get("transA", 0))
    depth = a[-2] if transposed and len(a) > 1 else a[-1]
    scaled = float(signature.options.get("alpha", 1.0)) != 1.0
    return 2 * _out(signature).count * depth + (_out(signature).count if scaled else 0)


def _gemm(signature: OpSignature) -> int:
    """A product; alpha and beta cost when they are not 1; C is added."""
    outputs = _out(signature).count
    with_c = _has(signature, 2)
    beta = with_c and float(signature.options.get("beta", 1.0)) != 1.0
    return _matmul(signature) + (outputs if with_c else 0) + (_in(signature, 2).count if beta else 0)


def _einsum(signature: OpSignature) -> int:
    """One multiply for each operand beyond the first and one add, for every combination of all the indices."""
    equation = signature.options["equation"].decode().replace(" ", "")
    extents: dict[str, int] = {}
    for term, tensor in zip(equation.split("->")[0].split(","), signature.given, strict=True):
        head, _, tail = term.partition("...")
        missing = len(tensor.shape) - len(head) - len(tail)
        letters = [*head, *(f".{missing - place}" for place in range(missing)), *tail]
        for letter, extent in zip(letters, tensor.shape, strict=True):
            extents[letter] = max(extent, extents.get(letter, 1))
    points = math.prod(extents.values())
    summed = points > _out(signature).count
    return points * (len(signature.given) - 1 + summed)


def _attention(signature: OpSignature) -> int:
    """Two products over queries x keys x head size, a scale, a mask if any, and a softmax."""
    q, k, v = (_in(signature, place).shape for place in range(3))
    if len(q) == 4:
        rows, keys, inner, outer = math.prod(q[:3]), k[2], q[3], v[3]
    else:
        heads = int(signature.options["q_num_heads"])
        key_heads = int(signature.options["kv_num_heads"])
        rows, keys, inner, outer = q[0] * q[1] * heads, k[1], q[2] // heads, v[2] // key_heads
    scores = rows * keys
    return 2 * scores * (inner + outer) + scores * (6 + _has(signature, 3))


def _kernel(signature: OpSignature) -> int:
    extents: list[int] = signature.options.get("kernel_shape", [1])
    return math.prod(extents)


def _pool(signature: OpSignature) -> int:
    """Kernel - 1 maxima for each output."""
    return _out(signature).count * (_kernel(signature) - 1)


def _average_pool(signature: OpSignature) -> int:
    """Kernel - 1 additions and a division for each output."""
    return _out(signature).count * _kernel(signature)


def _average_pool_grad(signature: OpSignature) -> int:
    """A division for each dY, then kernel additions into dX."""
    return _in(signature, 0).count * (1 + _kernel(signature))


def _reduced(after: int, before: int = 0) -> Count:
    """One addition fewer than there are elements for each result; and so many per element, so many per result."""

    def count(signature: OpSignature) -> int:
        elements, results = _in(signature, 0).count, _out(signature).count
        return elements - results + before * elements + after * results

    return count


def _norm(per_element: int, per_row: int) -> Count:
    """Layer and RMS normalization: rows run from `axis` on; scale and bias are counted where given."""

    def count(signature: OpSignature) -> int:
        x = _in(signature, 0)
        axis = int(signature.options.get("axis", -1))
        rows = math.prod(x.shape[: axis if axis >= 0 else len(x.shape) + axis])
        return x.count * (per_element + _has(signature, 1) + _has(signature, 2)) + per_row * rows

    return count


def _channel_norm(signature: OpSignature) -> int:
    """Instance and group normalization: mean 1, centre 1, square and sum 2, scale 1, then weight and bias 2."""
    x = _in(signature, 0)
    groups = int(signature.options.get("num_groups", x.shape[1]))
    return 7 * x.count + 4 * x.shape[0] * groups


def _batch_norm(signature: OpSignature) -> int:
    """Testing: (x - mean) * (scale / deviation) + bias, 3 per element and 3 per channel. Training adds the moments."""
    x, channels = _in(signature, 0), _in(signature, 1).count
    if signature.op_type == "BatchNormalization" and not signature.options.get("training_mode", 0):
        return 3 * x.count + 3 * channels
    running = sum(_has(signature, place) for place in (3, 4)) * 3 * channels
    return 3 * x.count + 3 * channels + 4 * x.count + 2 * channels + running


def _batch_norm_grad(signature: OpSignature) -> int:
    """dB: 1; x-hat: 2; dScale: 2; dX = a (N dY - dB - x-hat dScale) / N: 4 per element; 2 per channel."""
    return 9 * _in(signature, 0).count + 2 * _in(signature, 2).count


def _layer_norm_grad(signature: OpSignature) -> int:
    """x-hat 2, dBias 1, dScale 2, dY scale 1, two row sums 3, dX 5 per element; 2 per row."""
    dy = _in(signature, 0)
    axis = int(signature.options.get("axis", -1))
    return 14 * dy.count + 2 * math.prod(dy.shape[: axis if axis >= 0 else len(dy.shape) + axis])


def _lrn(signature: OpSignature) -> int:
    """Square, `size` - 1 additions, scale, bias, power, division."""
    return _out(signature).count * (int(signature.options["size"]) + 4)


def _softmax(per_row: int) -> Count:
    """Maximum, subtraction, exponential, sum and a division or subtraction: 5 per element, and so many per row.

    The two reductions save 2 per row; a logarithm costs 1.
    """

    def count(signature: OpSignature) -> int:
        x, newer = _in(signature, 0), signature.opset >= 13
        axis = int(signature.options.get("axis", -1 if newer else 1))
        length = x.shape[axis] if newer else math.prod(x.shape[axis:])
        return 5 * x.count + per_row * (x.count // max(1, length))

    return count


def _cross_entropy(signature: OpSignature) -> int:
    """A log-softmax over the classes, a sign and a sum for each label, and a division."""
    scores = _in(signature, 0)
    rows = scores.count // scores.shape[1]
    weighted = 2 * rows if _has(signature, 2) else 0
    return 5 * scores.count - rows + 2 * rows + weighted


def _cross_entropy_grad(signature: OpSignature) -> int:
    """exp(log p), minus one at the label, times the loss gradient over the count."""
    scores, labels = _in(signature, 1), _in(signature, 2)
    return 2 * scores.count + labels.count + 1


def _resize(signature: OpSignature) -> int:
    """Nearest moves; linear blends 2 neighbours, cubic 4, along each axis that changes."""
    mode = signature.options.get("mode", b"nearest")
    x, y = _in(signature, 0).shape, _out(signature).shape
    axes = sum(a != b for a, b in zip(x, y, strict=True))
    neighbours = {b"linear": 2, b"cubic": 4}.get(mode, 0) ** axes if mode != b"nearest" else 0
    return max(0, 2 * neighbours - 1) * _out(signature).count


def _updates(signature: OpSignature) -> int:
    """A scatter adds only if it reduces."""
    reduces = signature.options.get("reduction", b"none") not in (b"none", "none")
    return _in(signature, 2).count if reduces else 0


def _dropout(signature: OpSignature) -> int:
    """Compare and scale where it trains; the identity otherwise."""
    training = signature.inputs[2] if len(signature.inputs) > 2 else None
    value = training.value() if training else None
    trains = training is not None and (value is None or bool(value.reshape(-1)[0]))
    return 2 * _out(signature).count if trains else 0


def _recurrent(gates: int, pointwise: int) -> Count:
    """Each step and direction: two products for the gates and so many FLOPs for each hidden unit."""

    def count(signature: OpSignature) -> int:
        steps, batch, inputs = _in(signature, 0).shape
        directions = _in(signature, 1).shape[0]
        hidden = _in(signature, 2).shape[2]
        products = 2 * gates * hidden * (inputs + hidden)
        biases = 2 * gates * hidden if _has(signature, 3) else 0
        return steps * batch * directions * (products + biases + pointwise * hidden)

    return count


def _gelu(signature: OpSignature) -> int:
    """0.5 x (1 + erf(x / sqrt 2)) is 5; the tanh form, 0.5 x (1 + tanh(c (x + a x^3))), is 9."""
    tanh = signature.options.get("approximate", b"none") in (b"tanh", "tanh")
    return (9 if tanh else 5) * _out(signature).count


def _clip(signature: OpSignature) -> int:
    return (_has(signature, 1) + _has(signature, 2)) * _out(signature).count


# fmt: off
_MOVES = [
    "Transpose", "Concat", "Split", "Slice", "Gather", "GatherElements", "GatherND", "Where", "Expand", "Cast",
    "CastLike", "Pad", "Tile", "OneHot", "MaxUnpool", "Shape", "Size", "Constant", "ConstantOfShape", "Range",
    "DepthToSpace", "SpaceToDepth", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity", "NonZero", "Trilu",
    "EyeLike", "ConcatTraining", "SplitTraining", "ReverseSequence", "Compress", "Not", "And", "Or", "Xor",
    "ArgMax", "ArgMin", "TopK", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike",
    "Bernoulli",
]
# fmt: on
# fmt: off
_ONE_EACH = [
    "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Erf", "Tanh", "Relu", "Equal",
    "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Pow", "Floor", "Ceil", "Round", "Sin", "Cos", "Tan",
    "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Sign", "Mod", "IsNaN", "IsInf", "Scale",
    "ReluGrad", "CumSum", "InPlaceAccumulator", "InPlaceAccumulatorV2", "DropoutGrad",
]
# fmt: on

FORMULAS: dict[str, Count] = {
    **dict.fromkeys(_MOVES, _none),
    **dict.fromkeys(_ONE_EACH, _each(1)),
    "Sum": _variadic,
    "Min": _variadic,
    "Max": _variadic,
    "Mean": _mean,
    "Clip": _clip,
    "Conv": _conv,
    "FusedConv": _conv,
    "ConvTranspose": _conv_transpose,
    "ConvGrad": _conv_grad(met=0),
    "ConvTransposeGrad": _conv_grad(met=1),
    "MatMul": _matmul,
    "FusedMatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Attention": _attention,
    "MaxPool": _pool,
    "AveragePool": _average_pool,
    "MaxPoolGrad": _each_in(1, 0),  # one addition for each dY
    "AveragePoolGrad": _average_pool_grad,
    "GlobalAveragePool": _reduced(after=1),
    **dict.fromkeys(["GlobalMaxPool", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"], _reduced(after=0)),
    "ReduceMean": _reduced(after=1),
    "ReduceL1": _reduced(after=0, before=1),
    "ReduceL2": _reduced(after=1, before=1),
    "ReduceSumSquare": _reduced(after=0, before=1),
    "ReduceLogSum": _reduced(after=1),
    "ReduceLogSumExp": _reduced(after=1, before=1),
    "BatchNormalization": _batch_norm,
    "BatchNormInternal": _batch_norm,
    "BatchNormalizationGrad": _batch_norm_grad,
    "LayerNormalization": _norm(per_element=5, per_row=4),  # mean 1, centre 1, square and sum 2, scale 1
    "LayerNormalizationGrad": _layer_norm_grad,
    "RMSNormalization": _norm(per_element=3, per_row=3),
    "SimplifiedLayerNormalization": _norm(per_element=3, per_row=3),
    "InstanceNormalization": _channel_norm,
    "GroupNormalization": _channel_norm,
    "LRN": _lrn,
    "LpNormalization": _each(3),
    "Softmax": _softmax(per_row=-2),
    "LogSoftmax": _softmax(per_row=-1),
    "SoftmaxGrad_13": _each(4),  # dY y, its row sum, the difference, times y
    "LogSoftmaxGrad_13": _each(4),
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "SoftmaxCrossEntropyLossInternal": _cross_entropy,
    "NegativeLogLikelihoodLoss": _each_in(2, 1),
    "SoftmaxCrossEntropyLossGrad": _cross_entropy_grad,
    "SoftmaxCrossEntropyLossInternalGrad": _cross_entropy_grad,
    "Sigmoid": _each(4),  # negate, exponential, add, divide
    "Gelu": _gelu,
    "FastGelu": _each(9),
    "BiasGelu": _each(6),
    "QuickGelu": _each(6),
    "FastGeluGrad": _each(17),  # tanh's argument 6, 1 - t^2 2, inner derivative 4, the two halves 4, times dY 1
    "GeluGrad": _each(11),  # erf part 4, density 5, sum 1, times dY 1
    "SigmoidGrad": _each(3),
    "TanhGrad": _each(3),
    "LeakyRelu": _each(2),
    "PRelu": _each(2),
    "ThresholdedRelu": _each(1),
    "Elu": _each(4),
    "HardSigmoid": _each(4),
    **dict.fromkeys(["Selu", "Celu", "HardSwish", "Swish", "Mish"], _each(5)),
    "Softplus": _each(3),
    "Softsign": _each(3),
    "Resize": _resize,
    "Upsample": _resize,
    "ResizeGrad": _each_in(8),  # four neighbours, a multiply-add each
    "ScatterElements": _updates,
    "ScatterND": _updates,
    "GatherGrad": _each_in(1, 2),
    "GatherElementsGrad": _each_in(1, 0),
    "Dropout": _dropout,
    "LSTM": _recurrent(gates=4, pointwise=18),  # 3 sigmoids, 2 tanh, 3 products, 1 sum
    "GRU": _recurrent(gates=3, pointwise=13),  # 2 sigmoids, 1 tanh, 3 products or differences, 1 sum
}
