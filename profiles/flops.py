"""FLOPs and bytes of an op, counted from its signature.

Invariant: exact for every op in the tables. One FLOP is one addition, subtraction, multiplication, division, maximum,
comparison, square root or call of a transcendental function, on one element; a multiply-add is two. Moving,
converting and choosing elements (Transpose, Cast, Gather, Where) are none. Bytes are what must cross the memory bus
once: operands read, results written; an op that touches part of an operand is charged for that part.
"""

from __future__ import annotations

from profiles.formulas import (
    Count,
    count_attention,
    count_average_pool,
    count_average_pool_grad,
    count_batch_norm,
    count_batch_norm_grad,
    count_channel_norm,
    count_clip,
    count_conv,
    count_conv_grad,
    count_conv_transpose,
    count_cross_entropy,
    count_cross_entropy_grad,
    count_dropout,
    count_each,
    count_each_in,
    count_einsum,
    count_gelu,
    count_gemm,
    count_layer_norm_grad,
    count_lrn,
    count_matmul,
    count_mean,
    count_none,
    count_norm,
    count_pool,
    count_recurrent,
    count_reduced,
    count_resize,
    count_softmax,
    count_updates,
    count_variadic,
)
from profiles.signature import VIEWS, OpSignature


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
    **dict.fromkeys(_MOVES, count_none),
    **dict.fromkeys(_ONE_EACH, count_each(1)),
    "Sum": count_variadic,
    "Min": count_variadic,
    "Max": count_variadic,
    "Mean": count_mean,
    "Clip": count_clip,
    "Conv": count_conv,
    "FusedConv": count_conv,
    "ConvTranspose": count_conv_transpose,
    "ConvGrad": count_conv_grad(met=0),
    "ConvTransposeGrad": count_conv_grad(met=1),
    "MatMul": count_matmul,
    "FusedMatMul": count_matmul,
    "Gemm": count_gemm,
    "Einsum": count_einsum,
    "Attention": count_attention,
    "MaxPool": count_pool,
    "AveragePool": count_average_pool,
    "MaxPoolGrad": count_each_in(1, 0),  # one addition for each dY
    "AveragePoolGrad": count_average_pool_grad,
    "GlobalAveragePool": count_reduced(after=1),
    **dict.fromkeys(["GlobalMaxPool", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"], count_reduced(after=0)),
    "ReduceMean": count_reduced(after=1),
    "ReduceL1": count_reduced(after=0, before=1),
    "ReduceL2": count_reduced(after=1, before=1),
    "ReduceSumSquare": count_reduced(after=0, before=1),
    "ReduceLogSum": count_reduced(after=1),
    "ReduceLogSumExp": count_reduced(after=1, before=1),
    "BatchNormalization": count_batch_norm,
    "BatchNormInternal": count_batch_norm,
    "BatchNormalizationGrad": count_batch_norm_grad,
    "LayerNormalization": count_norm(per_element=5, per_row=4),  # mean 1, centre 1, square and sum 2, scale 1
    "LayerNormalizationGrad": count_layer_norm_grad,
    "RMSNormalization": count_norm(per_element=3, per_row=3),
    "SimplifiedLayerNormalization": count_norm(per_element=3, per_row=3),
    "InstanceNormalization": count_channel_norm,
    "GroupNormalization": count_channel_norm,
    "LRN": count_lrn,
    "LpNormalization": count_each(3),
    "Softmax": count_softmax(per_row=-2),
    "LogSoftmax": count_softmax(per_row=-1),
    "SoftmaxGrad_13": count_each(4),  # dY y, its row sum, the difference, times y
    "LogSoftmaxGrad_13": count_each(4),
    "SoftmaxCrossEntropyLoss": count_cross_entropy,
    "SoftmaxCrossEntropyLossInternal": count_cross_entropy,
    "NegativeLogLikelihoodLoss": count_each_in(2, 1),
    "SoftmaxCrossEntropyLossGrad": count_cross_entropy_grad,
    "SoftmaxCrossEntropyLossInternalGrad": count_cross_entropy_grad,
    "Sigmoid": count_each(4),  # negate, exponential, add, divide
    "Gelu": count_gelu,
    "FastGelu": count_each(9),
    "BiasGelu": count_each(6),
    "QuickGelu": count_each(6),
    "FastGeluGrad": count_each(17),  # tanh's argument 6, 1 - t^2 2, inner derivative 4, the two halves 4, times dY 1
    "GeluGrad": count_each(11),  # erf part 4, density 5, sum 1, times dY 1
    "SigmoidGrad": count_each(3),
    "TanhGrad": count_each(3),
    "LeakyRelu": count_each(2),
    "PRelu": count_each(2),
    "ThresholdedRelu": count_each(1),
    "Elu": count_each(4),
    "HardSigmoid": count_each(4),
    **dict.fromkeys(["Selu", "Celu", "HardSwish", "Swish", "Mish"], count_each(5)),
    "Softplus": count_each(3),
    "Softsign": count_each(3),
    "Resize": count_resize,
    "Upsample": count_resize,
    "ResizeGrad": count_each_in(8),  # four neighbours, a multiply-add each
    "ScatterElements": count_updates,
    "ScatterND": count_updates,
    "GatherGrad": count_each_in(1, 2),
    "GatherElementsGrad": count_each_in(1, 0),
    "Dropout": count_dropout,
    "LSTM": count_recurrent(gates=4, pointwise=18),  # 3 sigmoids, 2 tanh, 3 products, 1 sum
    "GRU": count_recurrent(gates=3, pointwise=13),  # 2 sigmoids, 1 tanh, 3 products or differences, 1 sum
}
