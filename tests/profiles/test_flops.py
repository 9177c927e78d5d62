"""FLOPs and bytes against counts made by hand, one row at least for each kind of op."""

from __future__ import annotations

import pytest

from profiles.flops import FORMULAS, flops, traffic
from tests.profiles.making import constant, floats, signature, truth, whole

X = floats(2, 3, 8, 8)  # 384 elements
GRID = floats(2, 3)  # 6 elements

ROWS = [
    # 2*4*6*6 outputs, each 3*3*3 multiply-adds and a bias
    ("Conv", [X, floats(4, 3, 3, 3), floats(4)], [floats(2, 4, 6, 6)], {}, 2 * 4 * 36 * (54 + 1)),
    # two groups halve the channels that an output sees: 288 outputs of 2 * 2 * 9
    ("Conv", [floats(2, 4, 8, 8), floats(4, 2, 3, 3)], [floats(2, 4, 6, 6)], {"group": 2}, 288 * 36),
    ("FusedConv", [X, floats(4, 3, 3, 3)], [floats(2, 4, 6, 6)], {}, 288 * 54),
    # each of 384 inputs meets 5 * 2 * 2 weights; 2*5*16*16 outputs get a bias
    ("ConvTranspose", [X, floats(3, 5, 2, 2), floats(5)], [floats(2, 5, 16, 16)], {}, 384 * 40 + 2560),
    # 288 dY: dX and dW cost a convolution each, dB an addition for each dY
    (
        "ConvGrad",
        [floats(2, 4, 6, 6), X, floats(4, 3, 3, 3)],
        [X, floats(4, 3, 3, 3), floats(4)],
        {},
        2 * 288 * 54 + 288,
    ),
    ("ConvGrad", [floats(2, 4, 6, 6), X, floats(4, 3, 3, 3)], [None, floats(4, 3, 3, 3)], {}, 288 * 54),
    (
        "ConvTransposeGrad",
        [floats(2, 5, 16, 16), X, floats(3, 5, 2, 2)],
        [X, floats(3, 5, 2, 2)],
        {},
        2 * 384 * 40,
    ),
    ("MatMul", [floats(5, 2, 3), floats(3, 4)], [floats(5, 2, 4)], {}, 5 * 2 * 4 * 6),
    ("FusedMatMul", [floats(3, 2), floats(3, 4)], [floats(2, 4)], {"transA": 1}, 8 * 6),
    ("FusedMatMul", [floats(2, 3), floats(3, 4)], [floats(2, 4)], {"alpha": 0.5}, 8 * 6 + 8),
    ("Gemm", [floats(2, 3), floats(3, 4), floats(4)], [floats(2, 4)], {}, 8 * 6 + 8),
    ("Gemm", [floats(3, 2), floats(3, 4)], [floats(2, 4)], {"transA": 1}, 48),
    ("Gemm", [floats(2, 3), floats(3, 4), floats(4)], [floats(2, 4)], {"alpha": 2.0, "beta": 3.0}, 48 + 8 + 8 + 4),
    ("Einsum", [floats(2, 3), floats(3, 4)], [floats(2, 4)], {"equation": "ij,jk->ik"}, 2 * 24),
    ("Einsum", [floats(2, 3), floats(2, 3)], [floats(2, 3)], {"equation": "ij,ij->ij"}, 6),
    ("Einsum", [floats(5, 2, 3), floats(5, 3, 4)], [floats(5, 2, 4)], {"equation": "...ij,...jk->...ik"}, 240),
    # 2 batches, 3 heads, 4 queries, 5 keys, size 6: 120 scores; products 24 * 120, scale and softmax 6 * 120
    ("Attention", [floats(2, 3, 4, 6), floats(2, 3, 5, 6), floats(2, 3, 5, 6)], [floats(2, 3, 4, 6)], {}, 120 * 30),
    ("MaxPool", [X], [floats(2, 3, 4, 4)], {"kernel_shape": [2, 2], "strides": [2, 2]}, 96 * 3),
    ("AveragePool", [X], [floats(2, 3, 4, 4)], {"kernel_shape": [2, 2], "strides": [2, 2]}, 96 * 4),
    ("MaxPoolGrad", [floats(2, 3, 4, 4), whole(2, 3, 4, 4)], [X], {}, 96),
    ("AveragePoolGrad", [floats(2, 3, 4, 4)], [X], {"kernel_shape": [2, 2]}, 96 * 5),
    ("GlobalAveragePool", [X], [floats(2, 3, 1, 1)], {}, 6 * 63 + 6),
    ("GlobalMaxPool", [X], [floats(2, 3, 1, 1)], {}, 6 * 63),
    ("ReduceSum", [X, constant([0, 2, 3])], [floats(3)], {}, 384 - 3),
    ("ReduceMean", [X, constant([0, 2, 3])], [floats(3)], {}, 384),
    ("ReduceMax", [X, constant([1])], [floats(2, 1, 8, 8)], {}, 384 - 128),
    ("ReduceL2", [GRID, constant([1])], [floats(2)], {}, 6 + 4 + 2),
    ("ReduceSumSquare", [GRID, constant([1])], [floats(2)], {}, 6 + 4),
    ("Softmax", [GRID], [GRID], {}, 2 * (2 + 3 + 3 + 2 + 3)),
    ("LogSoftmax", [GRID], [GRID], {}, 2 * (2 + 3 + 3 + 2 + 1 + 3)),
    ("SoftmaxCrossEntropyLoss", [GRID, whole(2)], [floats()], {}, 28 + 4),
    ("SoftmaxCrossEntropyLossGrad", [floats(), GRID, whole(2)], [GRID], {}, 12 + 2 + 1),
    ("SoftmaxGrad_13", [GRID, GRID], [GRID], {}, 24),
    ("LayerNormalization", [GRID, floats(3), floats(3)], [GRID], {}, 6 * 7 + 2 * 4),
    ("LayerNormalizationGrad", [GRID, GRID, floats(3), floats(2), floats(2)], [GRID], {}, 6 * 14 + 4),
    ("RMSNormalization", [GRID, floats(3)], [GRID], {}, 6 * 4 + 2 * 3),
    ("InstanceNormalization", [X, floats(3), floats(3)], [X], {}, 384 * 7 + 6 * 4),
    ("GroupNormalization", [X, floats(3), floats(3)], [X], {"num_groups": 1}, 384 * 7 + 2 * 4),
    ("BatchNormalization", [X, *[floats(3)] * 4], [X], {}, 384 * 3 + 9),
    ("BatchNormalization", [X, *[floats(3)] * 4], [X, floats(3), floats(3)], {"training_mode": 1}, 384 * 7 + 15 + 18),
    ("BatchNormInternal", [X, *[floats(3)] * 4], [X, *[floats(3)] * 4], {}, 384 * 7 + 15 + 18),
    ("BatchNormalizationGrad", [X, X, *[floats(3)] * 3], [X, floats(3), floats(3)], {}, 384 * 9 + 6),
    ("LRN", [X], [X], {"size": 5}, 384 * 9),
    ("Relu", [X], [X], {}, 384),
    ("ReluGrad", [X, X], [X], {}, 384),
    ("Clip", [X, constant(0.0, "f"), constant(6.0, "f")], [X], {}, 768),
    ("Clip", [X, constant(0.0, "f")], [X], {}, 384),
    ("Add", [X, floats(3, 1, 1)], [X], {}, 384),
    ("Sum", [X, X, X], [X], {}, 768),
    ("Max", [X, X], [X], {}, 384),
    ("Mean", [X, X, X], [X], {}, 1152),
    ("Pow", [X, constant(2.0, "f")], [X], {}, 384),
    ("Sigmoid", [GRID], [GRID], {}, 24),
    ("Tanh", [GRID], [GRID], {}, 6),
    ("Gelu", [GRID], [GRID], {}, 30),
    ("Gelu", [GRID], [GRID], {"approximate": "tanh"}, 54),
    ("FastGelu", [GRID], [GRID], {}, 54),
    ("FastGeluGrad", [GRID, GRID], [GRID], {}, 102),
    ("LeakyRelu", [GRID], [GRID], {}, 12),
    ("HardSwish", [GRID], [GRID], {}, 30),
    ("Softplus", [GRID], [GRID], {}, 18),
    ("Dropout", [GRID, constant(0.5, "f"), constant(True, bool)], [GRID, truth(2, 3)], {}, 12),
    ("Dropout", [GRID], [GRID], {}, 0),
    ("Resize", [X, None, None, constant([2, 3, 16, 16])], [floats(2, 3, 16, 16)], {"mode": "nearest"}, 0),
    ("Resize", [X, None, None, constant([2, 3, 16, 16])], [floats(2, 3, 16, 16)], {"mode": "linear"}, 1536 * 7),
    ("ScatterElements", [X, whole(2, 3, 4, 4), floats(2, 3, 4, 4)], [X], {"reduction": "add"}, 96),
    ("ScatterElements", [X, whole(2, 3, 4, 4), floats(2, 3, 4, 4)], [X], {}, 0),
    ("ScatterND", [GRID, whole(5, 1), floats(5, 3)], [GRID], {"reduction": "add"}, 15),
    ("GatherGrad", [whole(1), whole(5), floats(5, 3)], [GRID], {}, 15),
    ("CumSum", [GRID, constant(0)], [GRID], {}, 6),
    ("InPlaceAccumulatorV2", [GRID, GRID], [GRID], {}, 6),
    ("Transpose", [X], [X], {}, 0),
    ("Cast", [X], [X], {}, 0),
    ("Where", [truth(2, 3), GRID, GRID], [GRID], {}, 0),
    # 7 steps, batch 2, 3 inputs, 4 hidden units
    ("LSTM", [floats(7, 2, 3), floats(1, 16, 3), floats(1, 16, 4)], [floats(7, 1, 2, 4)], {}, 14 * (2 * 16 * 7 + 72)),
    ("GRU", [floats(7, 2, 3), floats(1, 12, 3), floats(1, 12, 4)], [floats(7, 1, 2, 4)], {}, 14 * (2 * 12 * 7 + 52)),
]

NEEDED = """
    Conv ConvTranspose MaxPool MaxUnpool AveragePool GlobalAveragePool BatchNormalization LRN Relu Clip Gemm MatMul Add
    Sum Sub Mul Div Pow Sqrt Softmax LogSoftmax SoftmaxCrossEntropyLoss LayerNormalization Gelu Erf Tanh Sigmoid Reshape
    Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather Where Expand ReduceMean ReduceSum Resize Dropout Cast
    Identity LSTM GRU InstanceNormalization GroupNormalization RMSNormalization Pad Min Max Abs Neg Exp Log Reciprocal
    LeakyRelu Elu HardSwish HardSigmoid Softplus PRelu GlobalMaxPool ReduceMax ReduceL2 Einsum Tile CumSum Attention
    SoftmaxCrossEntropyLossGrad ReluGrad ConvGrad ConvTransposeGrad BatchNormInternal BatchNormalizationGrad DropoutGrad
    ConcatTraining SplitTraining Scale ResizeGrad LayerNormalizationGrad SoftmaxGrad_13 FastGelu FastGeluGrad GatherGrad
    FusedMatMul InPlaceAccumulatorV2 MaxPoolGrad AveragePoolGrad GatherElements ScatterElements ScatterND OneHot
"""


@pytest.mark.parametrize(
    "op, inputs, outputs, attributes, count", ROWS, ids=lambda value: value if type(value) is str else ""
)
def test_counts_by_hand(op, inputs, outputs, attributes, count):
    assert flops(signature(op, inputs, outputs, **attributes)) == count


def test_every_op_of_the_rules_has_a_formula():
    assert set(NEEDED.split()) - set(FORMULAS) == set()


def test_an_unknown_op_has_no_count():
    assert flops(signature("Imagined", [GRID], [GRID])) is None


@pytest.mark.parametrize(
    "made, count",
    [
        (signature("Add", [GRID, floats(3)], [GRID]), 24 + 12 + 24),
        (signature("Reshape", [GRID, constant([6])], [floats(6)]), 0),
        (signature("Gather", [floats(1000, 3), whole(2)], [GRID]), 24 + 24 + 16),  # rows touched, not the table
        (signature("Cast", [GRID], [whole(2, 3)], to=7), 24 + 48),
        (signature("ScatterND", [floats(10, 3), whole(5, 1), floats(5, 3)], [floats(10, 3)]), 240 + 40 + 60),
    ],
    ids=lambda value: str(value),
)
def test_bytes_by_hand(made, count):
    assert traffic(made) == count
