"""The numeric rows: each rule on awkward shapes and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.remat_cli.gradient.row import Row, both, f, i, one, p, reductions, u
from tests.remat_cli.gradient.witness import erf, gelu, group_norm, grouped_transposed, local_response, standardized

POINTWISE = [
    *(Row(op, [f(3, 4), f(3, 4)]) for op in ("Add", "Sub", "Mul")),
    *(Row(op, [f(2, 3, 4), f(3, 1)]) for op in ("Add", "Sub", "Mul")),
    *(Row(op, [f(1, 4), f(2, 3, 1)]) for op in ("Add", "Sub", "Mul")),
    *(Row("Div", [f(*a), p(*b)]) for a, b in (((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((4,), (2, 1, 4)))),
    *(Row("Pow", [p(3, 4), one(e)], fixed=(1,)) for e in (0.0, 1.0, 2.0, 3.0, 0.5, -1.5)),
    Row("Pow", [p(3, 4), f(1, 4)]),
    Row("Pow", [f(3, 4), i(3)]),
    Row("Sum", [f(3, 4)]),
    Row("Sum", [f(3, 4), f(4), f(3, 1)]),
    Row("Mean", [f(3, 4), f(1, 4), f(1)]),
    *(Row(op, [f(3, 4), f(3, 4), f(4)]) for op in ("Min", "Max")),
    *(Row(op, [f(3, 1), f(4)]) for op in ("Min", "Max")),
    Row("Max", [f(3)]),
    Row("Clip", [f(3, 4), one(-0.4), one(0.6)], fixed=(1, 2)),
    Row("Clip", [f(3, 4), None, one(0.6)]),
    Row("Clip", [f(3, 4)]),
    Row("Where", [np.array([[True], [False]]), f(2, 3), f(3)]),
    Row("Cast", [f(3, 4)], {"to": 1}),
    Row("CastLike", [f(3, 4), one(1.0)], fixed=(1,)),
    *(row for op in ("Neg", "Abs", "Exp", "Reciprocal", "Identity", "Tanh") for row in both(op)),
    *(row for op in ("Sin", "Cos", "Sinh", "Cosh", "Asinh", "Atan", "Softsign") for row in both(op)),
    *(row for op in ("Relu", "Sigmoid", "Softplus", "HardSwish", "Mish", "Selu") for row in both(op)),
    Row("Erf", [f(3, 4)], forward=erf),
    Row("Gelu", [f(3, 4)], forward=gelu),
    *(Row(op, [u(3, 4)]) for op in ("Tan", "Asin", "Acos", "Atanh")),
    *(Row(op, [p(3, 4)]) for op in ("Log", "Sqrt")),
    Row("Acosh", [p(3, 4) + 1]),
    *both("LeakyRelu", alpha=0.3),
    *both("LeakyRelu", alpha=-0.3),
    *both("Elu", alpha=1.3),
    *both("Elu", alpha=-0.7),
    *both("Celu", alpha=0.7),
    *both("ThresholdedRelu", alpha=0.3),
    *both("HardSigmoid", alpha=0.3, beta=0.4),
    *both("Gelu", approximate="tanh"),
    Row("Swish", [f(3, 4)], {"alpha": 1.3}, opset=24),
    Row("PRelu", [f(2, 3, 4), f(3, 1)]),
    Row("PRelu", [f(2, 3, 4), f(1)]),
]

PRODUCTS = [
    *(
        Row("MatMul", [f(*a), f(*b)])
        for a, b in (
            ((3, 4), (4, 2)),
            ((2, 3, 4), (4, 5)),
            ((3, 4), (2, 4, 5)),
            ((2, 1, 3, 4), (5, 4, 2)),
            ((4,), (4, 3)),
            ((3, 4), (4,)),
            ((4,), (4,)),
            ((2, 3, 4), (4,)),
            ((4,), (2, 4, 3)),
            ((2, 3, 4), (1, 4, 5)),
            ((1, 3, 4), (2, 4, 5)),
        )
    ),
    *(
        Row(
            "Gemm",
            [f(*(a[::-1] if ta else a)), f(*(b[::-1] if tb else b)), f(*c)],
            {"transA": ta, "transB": tb, **more},
        )
        for ta, tb, c, more in (
            (0, 0, (5,), {}),
            (1, 0, (3, 5), {"alpha": 0.5}),
            (0, 1, (3, 1), {"beta": 2.0}),
            (1, 1, (), {"alpha": 1.5, "beta": 0.3}),
        )
        for a, b in (((3, 4), (4, 5)),)
    ),
    Row("Gemm", [f(3, 4), f(4, 5)]),
    Row("Gemm", [f(3, 4), f(4, 5), None]),
    Row("Einsum", [f(2, 3, 4), f(2, 4, 5)], {"equation": "bij,bjk->bik"}),
    Row("Einsum", [f(2, 3, 4), f(5, 4)], {"equation": "...ij, kj -> ...ik"}),
    Row("Einsum", [f(3, 4)], {"equation": "ij->j"}),
    Row("Einsum", [f(3, 4), f(4)], {"equation": "ij,j"}),
    Row("Einsum", [f(3), f(4), f(2, 3)], {"equation": "i,j,ki->jk"}),
    Row("Einsum", [f(2, 3), f(2, 4)], {"equation": "ij,ik->i"}),
    Row("Einsum", [f(2, 3, 3)], {"equation": "bii->b"}),
    Row("Einsum", [f(3, 2, 3), f(3, 4)], {"equation": "iki,ij->jk"}),
    Row("Einsum", [f(3, 3, 3)], {"equation": "iii->i"}),
]

CONVOLUTION = [
    Row("Conv", [f(2, 3, 5, 6), f(4, 3, 3, 3), f(4)], {"pads": [1, 1, 1, 1]}),
    Row("Conv", [f(2, 3, 7, 6), f(4, 3, 3, 2)], {"strides": [2, 3], "pads": [0, 1, 2, 1]}),
    Row("Conv", [f(2, 3, 9, 8), f(4, 3, 3, 3)], {"dilations": [2, 3], "pads": [2, 1, 0, 3]}),
    Row("Conv", [f(2, 4, 5, 5), f(6, 2, 3, 3), f(6)], {"group": 2, "strides": [2, 2]}),
    Row("Conv", [f(2, 4, 6, 5), f(4, 1, 3, 3)], {"group": 4, "pads": [1, 1, 1, 1]}),
    Row("Conv", [f(2, 3, 6, 5), f(6, 1, 3, 3)], {"group": 3, "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    Row("Conv", [f(2, 3, 5, 5), f(4, 3, 1, 1), f(4)]),
    Row("Conv", [f(1, 3, 5, 5), f(4, 3, 1, 1)]),
    Row("Conv", [f(2, 7, 2, 2), f(9, 7, 1, 1)]),
    Row("Conv", [f(2, 3, 5, 6), f(4, 3, 1, 1)], {"strides": [2, 2]}),
    Row("Conv", [f(2, 3, 5, 5), f(4, 3, 1, 1)], {"pads": [1, 0, 0, 1]}),
    Row("Conv", [f(2, 3, 7, 9), f(4, 3, 2, 3)], {"strides": [2, 3]}),
    Row("Conv", [f(2, 3, 8), f(4, 3, 3)], {"strides": [2], "pads": [1, 1]}),
    Row("Conv", [f(1, 2, 4, 5, 3), f(3, 2, 2, 3, 2)], {"pads": [0, 1, 1, 1, 1, 0], "strides": [1, 2, 1]}),
    Row("Conv", [f(2, 3, 6, 7), f(4, 3, 3, 4)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    Row("Conv", [f(2, 3, 6, 7), f(4, 3, 2, 4)], {"auto_pad": "SAME_LOWER"}),
    Row("Conv", [f(2, 3, 6, 7), f(4, 3, 3, 4)], {"auto_pad": "VALID"}),
    Row("Conv", [f(1, 2, 22, 21), f(3, 2, 3, 3)], {"pads": [1, 0, 2, 1], "dilations": [1, 2]}),
    Row("Conv", [f(1, 2, 24, 22), f(3, 2, 1, 1)], {"pads": [2, 0, 1, 0]}),
    Row("ConvTranspose", [f(2, 3, 4, 5), f(3, 4, 3, 3), f(4)]),
    Row("ConvTranspose", [f(2, 3, 4, 3), f(3, 4, 3, 2)], {"strides": [2, 3], "pads": [1, 0, 0, 1]}),
    Row(
        "ConvTranspose",
        [f(2, 4, 4, 3), f(4, 3, 3, 3)],
        {"group": 2, "strides": [2, 2], "output_padding": [1, 1]},
        forward=grouped_transposed,
    ),
    Row("ConvTranspose", [f(2, 3, 4, 3), f(3, 2, 2, 2), f(2)], {"strides": [2, 2]}),
    Row("ConvTranspose", [f(2, 3, 4, 3), f(3, 2, 3, 2)], {"dilations": [2, 1], "pads": [1, 1, 1, 0]}),
    Row("ConvTranspose", [f(2, 3, 5), f(3, 2, 4)], {"strides": [2], "pads": [1, 1]}),
]

POOLING = [
    Row("MaxPool", [f(2, 3, 6, 6)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Row("MaxPool", [f(2, 3, 7, 6)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Row("MaxPool", [f(2, 3, 7, 6)], {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    Row("MaxPool", [f(2, 3, 7, 6)], {"kernel_shape": [2, 2], "dilations": [2, 3]}),
    Row("MaxPool", [f(2, 3, 9)], {"kernel_shape": [3], "strides": [1]}),
    Row("MaxPool", [f(1, 2, 4, 5, 4)], {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2]}),
    Row("AveragePool", [f(2, 3, 6, 6)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Row("AveragePool", [f(2, 3, 7, 6)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    Row(
        "AveragePool",
        [f(2, 3, 7, 6)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    Row("AveragePool", [f(2, 3, 6, 7)], {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    Row("AveragePool", [f(2, 3, 6, 7)], {"kernel_shape": [2, 2], "dilations": [2, 3]}),
    Row("AveragePool", [f(2, 3, 6, 7)], {"kernel_shape": [6, 7]}),
    Row("AveragePool", [f(2, 3, 9)], {"kernel_shape": [2], "strides": [3]}),
    Row("AveragePool", [f(2, 3, 5, 5)], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    Row("GlobalAveragePool", [f(2, 3, 4, 5)]),
    Row("GlobalAveragePool", [f(2, 3, 4)]),
    Row("GlobalMaxPool", [f(2, 3, 4, 5)]),
    Row("MaxUnpool", [f(1, 1, 2, 2), i([[[0, 3], [10, 13]]])[None, 0]], {"kernel_shape": [2, 2], "strides": [2, 2]}),
]

NORMALIZATION = [
    *(Row(op, [f(2, 3, 4)], {"axis": axis}) for op in ("Softmax", "LogSoftmax") for axis in (-1, 0, 1)),
    Row("LayerNormalization", [f(2, 3, 4), f(4), f(4)]),
    Row("LayerNormalization", [f(2, 3, 4), f(3, 4)], {"axis": -2, "epsilon": 0.1}),
    Row("LayerNormalization", [f(2, 3, 4), f(4), f(1)], {"axis": 2}),
    Row("RMSNormalization", [f(2, 3, 4), f(4)], opset=23),
    Row("RMSNormalization", [f(2, 3, 4), f(3, 4)], {"axis": 1, "epsilon": 0.1}, opset=23),
    Row("InstanceNormalization", [f(2, 3, 4, 5), f(3), f(3)]),
    Row("InstanceNormalization", [f(2, 3, 4), f(3), f(3)], {"epsilon": 0.1}),
    *(
        Row(
            "GroupNormalization",
            [f(*shape), f(scales), f(scales)],
            {"num_groups": groups},
            opset=opset,
            rule="InstanceNormalization",
            forward=lambda x, scale, bias, groups=groups: group_norm(x, scale, bias, groups),
        )
        for shape, scales, groups, opset in (((2, 6, 4, 3), 6, 3, 21), ((2, 6, 4), 2, 2, 20))
    ),
    Row("LpNormalization", [f(2, 3, 4)], {"axis": 1}),
    Row("LpNormalization", [f(2, 3, 4)], {"p": 1}, forward=lambda x: x / np.abs(x).sum(-1, keepdims=True)),
    Row("MeanVarianceNormalization", [f(2, 3, 4, 2)], rule="ReduceMean", forward=standardized),
    Row("LRN", [f(2, 5, 3, 2)], {"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 1.5}, forward=local_response),
    Row("BatchNormalization", [f(3, 4, 2, 3), f(4), f(4), f(4), p(4)], fixed=(3, 4)),
    Row("BatchNormalization", [f(5, 4), f(4), f(4), f(4), p(4)], {"epsilon": 0.1}, fixed=(3, 4)),
    *(
        Row(
            "BatchNormalization",
            [f(*shape), f(4), f(4), f(4), p(4)],
            {"training_mode": 1, **more},
            outputs=outputs,
            fixed=(3, 4),
            rule="BatchNormalization in training",
        )
        for shape, outputs, more in (((3, 4, 2, 3), 3, {}), ((5, 4), 3, {"epsilon": 0.1, "momentum": 0.8}))
    ),
    Row("Dropout", [f(3, 4)], rule="Identity"),
    Row("SoftmaxCrossEntropyLoss", [f(4, 5), i(0, 3, 4, 3)], rule="cross-entropy"),
    Row("SoftmaxCrossEntropyLoss", [f(4, 5), i(0, 3, 4, 3)], {"reduction": "sum"}, outputs=2, rule="cross-entropy"),
    Row("SoftmaxCrossEntropyLoss", [f(4, 5), i(0, 3, 4, 3), p(5)], fixed=(2,), rule="cross-entropy"),
    Row("SoftmaxCrossEntropyLoss", [f(2, 5, 2), i([0, 3], [4, 3])], {"reduction": "none"}, rule="cross-entropy"),
    Row("SoftmaxCrossEntropyLoss", [f(4, 5), i(0, 3, 4, 3)], {"ignore_index": 3}, rule="cross-entropy"),
    Row("NegativeLogLikelihoodLoss", [f(4, 5), i(0, 3, 4, 3)], rule="GatherElements"),
]

REDUCTION = [
    *(row for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1") for row in reductions(op)),
    *(row for op in ("ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd") for row in reductions(op)),
    *reductions("ReduceLogSum", p),
    Row("ReduceProd", [np.array([[2.0, 0.0, 3.0], [1.0, -2.0, 0.5]]), i(1)]),
    *(Row("CumSum", [f(3, 4), i(1)[0]], {"exclusive": e, "reverse": r}) for e in (0, 1) for r in (0, 1)),
    Row("CumSum", [f(3, 4), i(-2)[0]]),
]

SHAPE = [
    Row("Reshape", [f(2, 3, 4), i(0, -1)]),
    Row("Flatten", [f(2, 3, 4)], {"axis": -1}),
    Row("Squeeze", [f(2, 1, 3, 1), i(-1)]),
    Row("Squeeze", [f(2, 1, 3, 1)]),
    Row("Unsqueeze", [f(2, 3), i(0, -1)]),
    Row("Transpose", [f(2, 3, 4)]),
    Row("Transpose", [f(2, 3, 4)], {"perm": [2, 0, 1]}),
    Row("Concat", [f(2, 3), f(2, 1), f(2, 2)], {"axis": -1}),
    Row("Concat", [f(2, 3)], {"axis": 0}),
    Row("Split", [f(2, 5), i(1, 3, 1)], {"axis": -1}, outputs=3),
    Row("Split", [f(5, 2)], {"num_outputs": 2}, outputs=2),
    Row("Split", [f(4, 2)], {}, outputs=2, opset=17),
    Row("Slice", [f(4, 5), i(1), i(3)]),
    Row("Slice", [f(4, 5), i(5), i(2**62), i(1)]),
    Row("Slice", [f(6, 7), i(-5, 0), i(1000, -1), i(-1, 0), i(2, 3)]),
    Row("Slice", [f(6, 5), i(-1, 3), i(-1000, 0), i(0, 1), i(-2, -1)]),
    Row("Slice", [f(6, 5), i(0), i(6), i(0), i(5)]),
    Row("Pad", [f(2, 3), i(1, 0, 2, 1)]),
    Row(
        "Pad",
        [f(2, 4), i(0, -1, 0, 2), one(1.5)],
        fixed=(2,),
        forward=lambda x: np.pad(x[:, 1:], ((0, 0), (0, 2)), constant_values=1.5),
    ),
    Row("Pad", [f(2, 4), i(2, -1), None, i(1)], forward=lambda x: np.pad(x[:, :-1], ((0, 0), (2, 0)))),
    *(Row("Pad", [f(2, 3, 4), i(1, 2), None, i(-1)], {"mode": mode}) for mode in ("reflect", "edge", "wrap")),
    Row("Pad", [f(3, 4), i(1, 2, 2, 1)], {"mode": "reflect"}),
    Row("Expand", [f(3, 1), i(2, 1, 4)]),
    Row("Expand", [f(3, 4), i(1)]),
    Row("Tile", [f(2, 3), i(3, 2)]),
    Row("Tile", [f(2, 3), i(1, 2)]),
    Row("DepthToSpace", [f(2, 8, 2, 3)], {"blocksize": 2}),
    Row("DepthToSpace", [f(2, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}),
    Row("SpaceToDepth", [f(2, 2, 4, 6)], {"blocksize": 2}),
]

INDEXING = [
    Row("Gather", [f(5, 3), i(0, 4, 4, -1)]),
    Row("Gather", [f(2, 5, 3), i([0, 4], [4, 1])], {"axis": 1}),
    Row("Gather", [f(2, 5), i(1)[0]], {"axis": -1}),
    Row("Gather", [f(2, 5), i(-2)[0]], {"axis": 0}),
    Row("GatherElements", [f(3, 4), i([0, 3, 3, -1], [1, 1, 1, 1], [2, 0, 0, 0])], {"axis": 1}),
    Row("GatherND", [f(3, 4, 2), i([0, 3], [2, 1], [0, 3])]),
    Row("ScatterElements", [f(3, 4), i([0, 2], [1, 3]), f(2, 2)], {"axis": 1}),
    Row("ScatterElements", [f(3, 4), i([0, 2], [0, 2]), f(2, 2)], {"axis": 0, "reduction": "add"}),
    Row("ScatterND", [f(4, 3), i([1], [3]), f(2, 3)]),
    Row("ScatterND", [f(4, 3), i([1], [1]), f(2, 3)], {"reduction": "add"}),
    Row("TopK", [f(3, 6), i(2)], {"axis": -1}, outputs=2),
    Row("TopK", [f(5, 3), i(2)], {"axis": 0, "largest": 0}, outputs=2),
    Row("Trilu", [f(4, 4)]),
    Row("Trilu", [f(2, 3, 5), i(1)[0]], {"upper": 0}),
]


def resize(shape: tuple[int, ...], scales: Sequence[float] | None = None, sizes: Any = None, **more: Any) -> Row:
    given = np.array(scales, np.float32) if scales else None
    return Row("Resize", [f(*shape), None, given, *([i(*sizes)] if sizes else [])], more, fixed=(2,))


RESIZE = [
    resize((2, 3, 3, 4), [1, 1, 2, 3]),
    resize(
        (2, 3, 3, 4), [1, 1, 2, 2], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    resize((1, 2, 3, 5), sizes=(1, 2, 7, 4), nearest_mode="ceil"),
    resize((1, 2, 3, 4), [1, 1, 2, 2], mode="linear"),
    resize((1, 2, 3, 4), sizes=(1, 2, 7, 3), mode="linear", coordinate_transformation_mode="align_corners"),
    resize((1, 2, 3, 4), sizes=(1, 2, 5, 1), mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
    resize((1, 2, 4, 5), [1, 1, 1.5, 1.5], mode="cubic"),
    resize((1, 2, 4, 5), sizes=(1, 2, 6, 9), mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1),
    resize((1, 2, 5), sizes=(1, 2, 8), mode="linear", coordinate_transformation_mode="asymmetric"),
]

RECURRENT = [
    Row("LSTM", [f(4, 2, 3), f(1, 8, 3), f(1, 8, 2), f(1, 16)], {"hidden_size": 2}, outputs=3),
    Row(
        "LSTM", [f(3, 2, 3), f(1, 8, 3), f(1, 8, 2), None, None, f(1, 2, 2), f(1, 2, 2)], {"hidden_size": 2}, outputs=1
    ),
    Row("GRU", [f(4, 2, 3), f(1, 6, 3), f(1, 6, 2), f(1, 12)], {"hidden_size": 2}, outputs=2),
    Row("GRU", [f(4, 2, 3), f(1, 6, 3), f(1, 6, 2), f(1, 12)], {"hidden_size": 2, "linear_before_reset": 1}),
    Row("RNN", [f(4, 2, 3), f(1, 2, 3), f(1, 2, 2), f(1, 4)], {"hidden_size": 2}, outputs=2),
]
RECURRENT = [Row(r.op, r.inputs, r.attributes, r.outputs, r.fixed, 20, "Gemm") for r in RECURRENT]

ATTENTION = [
    Row("Attention", [f(2, 3, 4, 5), f(2, 3, 6, 5), f(2, 3, 6, 2)], {}, opset=23, rule="Softmax"),
    Row("Attention", [f(2, 3, 4, 5), f(2, 3, 4, 5), f(2, 3, 4, 5)], {"is_causal": 1}, opset=23, rule="Softmax"),
    Row("Attention", [f(2, 4, 3, 5), f(2, 2, 3, 5), f(2, 2, 3, 5), f(3, 3)], {"scale": 0.3}, opset=23, rule="Softmax"),
    Row("Attention", [f(2, 3, 8), f(2, 3, 8), f(2, 3, 8)], {"q_num_heads": 2, "kv_num_heads": 2}, opset=23, rule="Add"),
    Row("RotaryEmbedding", [f(2, 3, 4, 6), f(2, 4, 3), f(2, 4, 3)], {}, fixed=(1, 2), opset=23, rule="Mul"),
    Row("Shrink", [f(3, 4)], {"lambd": 0.4, "bias": 0.2}, rule="Where"),
]

ROWS = [
    *POINTWISE,
    *PRODUCTS,
    *CONVOLUTION,
    *POOLING,
    *NORMALIZATION,
    *REDUCTION,
    *SHAPE,
    *INDEXING,
    *RESIZE,
    *RECURRENT,
    *ATTENTION,
]
