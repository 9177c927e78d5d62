"""How each op can share a kernel with its neighbours, as compilers that fuse ops see it.

Invariant: data only; an op that is in no table shares a kernel with nobody.
"""

from __future__ import annotations

from collections.abc import Iterable

from remat_cli.model.graph import Op
from remat_cli.model.semantics import VIEWS
from solvers.problem import Kind

COMPUTE = {
    *("Attention", "Conv", "ConvGrad", "ConvTranspose", "ConvTransposeGrad", "DeformConv", "Einsum", "FusedMatMul"),
    *("GRU", "Gemm", "LSTM", "MatMul", "MultiHeadAttention", "RNN", "TransposeMatMul"),
}

REDUCTIONS = {
    *("ArgMax", "ArgMin", "BatchNormInternal", "BatchNormalization", "BatchNormalizationGrad", "GlobalAveragePool"),
    *("GlobalMaxPool", "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LayerNormalizationGrad"),
    *("LogSoftmax", "LogSoftmaxGrad", "LogSoftmaxGrad_13", "RMSNormalization", "SimplifiedLayerNormalization"),
    *("SimplifiedLayerNormalizationGrad", "SkipLayerNormalization", "Softmax", "SoftmaxCrossEntropyLoss"),
    *("SoftmaxCrossEntropyLossInternal", "SoftmaxGrad", "SoftmaxGrad_13"),
}

POINTWISE = {
    *("Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BiasGelu", "BiasGeluGrad_dX"),
    *("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip"),
    *("Cos", "Cosh", "Div", "Dropout", "DropoutGrad", "Elu", "Equal", "Erf", "Exp", "Expand", "FastGelu"),
    *("FastGeluGrad", "Floor", "Gelu", "GeluGrad", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf"),
    *("IsNaN", "LeakyRelu", "LeakyReluGrad", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul"),
    *("Neg", "Not", "Or", "PRelu", "Pow", "QuickGelu", "QuickGeluGrad", "Reciprocal", "Relu", "ReluGrad", "Round"),
    *("Scale", "Selu", "Sigmoid", "SigmoidGrad", "Sign", "Sin", "SinGrad", "Sinh", "Softplus", "Softsign", "Sqrt"),
    *("Sub", "Sum", "Swish", "Tan", "Tanh", "TanhGrad", "ThresholdedRelu", "Where", "Xor"),
}

# Ops that copy elements unchanged: a fusing compiler lets the reader do it, as PyTorch's does with indexing.
MOVES = {
    *("ConstantOfShape", "DepthToSpace", "EyeLike", "Gather", "GatherElements", "GatherND", "OneHot", "Pad", "Range"),
    *("Shape", "Size", "Slice", "SpaceToDepth", "Split", "SplitTraining", "Tile", "Transpose", "Trilu"),
}

EPILOGUES = {"FusedConv", "FusedGemm"}  # products that the optimizers have joined with an activation

CONCATS = {"Concat", "ConcatTraining"}

REDUCES = {
    *("ReduceAllL2", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare", "ReduceSumTraining"),
}

KINDS: tuple[tuple[Kind, Iterable[str]], ...] = (
    (Kind.VIEW, VIEWS),
    (Kind.POINTWISE, POINTWISE | MOVES),
    (Kind.REDUCTION, REDUCTIONS | REDUCES),
    (Kind.CONCAT, CONCATS),
    (Kind.COMPUTE, COMPUTE),
    (Kind.EPILOGUE, EPILOGUES),
)
KIND_OF = {name: kind for kind, names in reversed(KINDS) for name in names}  # of several kinds the first counts


def kind_of(op: Op) -> Kind:
    """How the op can share a kernel with its neighbours."""
    return KIND_OF.get(op.op_type, Kind.OPAQUE)
