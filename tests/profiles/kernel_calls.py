"""Calls of ops, to hold what is known of kernels' memory against what they were seen to allocate.

`TO_THE_BYTE`: calls whose formula is exact; `AT_MOST`: whose formula is an upper bound; `IN_NOTHING`: a call of each op
that allocates nothing. A call is an op, its inputs, which outputs it makes, and attributes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from profiles.feeds import operands
from profiles.running import single, strict_options
from profiles.signature import Operand, OpSignature
from tests.profiles.making import constant, floats, signature, truth, whole

Call = tuple[str, list[Operand | None], str, dict[str, Any]]


def call(op: str, inputs: list[Operand | None], makes: str = "1", **options: Any) -> Call:
    return op, inputs, makes, options


def bytes_of(*shape: int) -> Operand:
    return Operand(TensorProto.UINT8, shape)


def number(value: float) -> Operand:
    return constant(value, np.float32)


def zero(dtype: Any = np.uint8) -> Operand:
    return constant(0, dtype)


def made_of(given: Call) -> OpSignature:
    """The call's signature, with the outputs as the runtime makes them."""
    op, inputs, makes, options = given
    first = signature(op, inputs, [floats() if flag == "1" else None for flag in makes], **options)
    content, feeds = single(first, operands(first))
    model = onnx.ModelProto.FromString(content)
    for output in model.graph.output:
        output.ClearField("type")
    running = onnxruntime.InferenceSession(
        model.SerializeToString(), strict_options(), providers=["CPUExecutionProvider"]
    )
    found = iter(running.run(None, feeds))
    outputs = [_seen(next(found)) if flag == "1" else None for flag in makes]
    return signature(op, inputs, outputs, **options)


def _seen(array: Any) -> Operand:
    return Operand(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


X, S = (2, 24, 18, 20), (4, 30, 50)
MS = {"domain": "com.microsoft", "opset": 1}
SCALED = [number(0.1), zero()]


def recurrent(gates: int, x: tuple[int, ...], ways: int, hidden: int = 16) -> list[Operand | None]:
    weights = [(gates * hidden, x[2]), (gates * hidden, hidden), (2 * gates * hidden,)]
    return [floats(*x), *(floats(ways, *shape) for shape in weights)]


def recurrent_calls() -> list[Call]:
    found = []
    for direction, ways in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        said = {"hidden_size": 16, "direction": direction}
        x, state = (S if ways == 2 else (3, 7, 600)), floats(ways, 30 if ways == 2 else 7, 16)
        found += [call("LSTM", recurrent(4, x, ways), makes, **said) for makes in ("111", "1", "01")]
        found.append(call("LSTM", [*recurrent(4, x, ways), None, state, state], "111", **said))
        for linear in (0, 1):
            gated = {**said, "linear_before_reset": linear}
            found += [call("GRU", recurrent(3, x, ways), makes, **gated) for makes in ("11", "1")]
        found += [call("RNN", recurrent(1, x, ways), makes, **said) for makes in ("11", "01")]
    lengths = Operand(TensorProto.INT32, (30,))
    peepholes = [lengths, floats(1, 30, 16), floats(1, 30, 16), floats(1, 48)]
    found.append(call("LSTM", [*recurrent(4, S, 1), *peepholes], "111", hidden_size=16))
    found.append(call("GRU", [*recurrent(3, S, 1), lengths], "11", hidden_size=16))
    return [*found, *(call(op, recurrent(n, S, 1)[:3], "1", hidden_size=16) for op, n in (("LSTM", 4), ("GRU", 3)))]


def attention_calls() -> list[Call]:
    query, key = floats(2, 4, 9, 16), floats(2, 4, 11, 16)
    three, past = [query, key, key], floats(2, 4, 5, 16)
    flat = [floats(2, 9, 64), floats(2, 11, 32), floats(2, 11, 32)]
    return [
        call("Attention", three, opset=23),
        call("Attention", three, opset=23, is_causal=1),
        call("Attention", flat, opset=23, q_num_heads=4, kv_num_heads=2),
        call("Attention", [*three, floats(9, 11)], opset=23),
        call("Attention", [*three, truth(9, 11)], opset=23),
        call("Attention", [*three, truth(2, 4, 9, 11)], "1001", opset=23, is_causal=1),
        call("Attention", [*three, floats(2, 1, 9, 11)], opset=24, softcap=3.0),
        call("Attention", [*three, None, past, past], "111", opset=23),
    ]


def quantized_calls() -> list[Call]:
    image, scaled = bytes_of(*X), [number(0.1), zero()]

    def conv(*weight: int, **options: Any) -> Call:
        return call("QLinearConv", [image, *scaled, bytes_of(*weight), *scaled, *scaled], **options)

    def product(*b: int) -> Call:
        return call("QLinearMatMul", [bytes_of(*S), *scaled, bytes_of(*b), *scaled, *scaled])

    return [
        conv(8, 24, 3, 3, kernel_shape=[3, 3]),
        conv(8, 24, 3, 3, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        conv(8, 24, 1, 1, kernel_shape=[1, 1]),
        conv(8, 24, 1, 1, kernel_shape=[1, 1], strides=[2, 2]),
        conv(24, 1, 3, 3, kernel_shape=[3, 3], group=24),
        conv(8, 6, 3, 3, kernel_shape=[3, 3], group=4),
        product(50, 40),
        product(4, 50, 40),
        call("ConvInteger", [image, bytes_of(8, 24, 3, 3)], kernel_shape=[3, 3]),
        call("ConvInteger", [image, bytes_of(8, 6, 3, 3)], kernel_shape=[3, 3], group=4),
        call("ConvInteger", [image, bytes_of(8, 24, 1, 1)], kernel_shape=[1, 1]),
        call("DynamicQuantizeMatMul", [floats(*S), bytes_of(50, 40), number(0.1), zero()], **MS),
    ]


def resize_calls() -> list[Call]:
    images: list[tuple[tuple[int, ...], list[float]]] = [(X, [1, 1, 2, 2]), ((3, 8, 33, 31), [1, 1, 0.5, 0.7])]
    found = [
        call("Resize", [floats(*x), None, constant(scales, np.float32)], mode=mode)
        for x, scales in (*images, ((2, 24, 18), [1, 1, 2]), ((2, 8, 5, 6, 7), [1, 1, 2, 2, 2]))
        for mode in ("nearest", "linear")
    ]
    scales = constant([1, 1, 2, 2], np.float32)
    to, smaller = constant([2, 24, 40, 45]), constant([3, 8, 16, 21])
    return [
        *found,
        call("Resize", [floats(*X), None, scales], mode="cubic"),
        *(
            call("Resize", [floats(3, 8, 33, 31), None, None, smaller], mode=mode, antialias=1)
            for mode in ("linear", "cubic")
        ),
        call("Resize", [floats(*X), None, None, to], mode="linear", coordinate_transformation_mode="align_corners"),
        call("Upsample", [floats(*X), scales], mode="linear", opset=9),
        call("Upsample", [floats(*X), scales], mode="nearest", opset=9),
    ]


TO_THE_BYTE = [
    *recurrent_calls(),
    *attention_calls(),
    *quantized_calls(),
    *resize_calls(),
    *(call(op, [floats(*X)] * count) for op in ("Sum", "Max", "Min", "Mean") for count in (1, 2, 3, 5)),
    *(call(op, [floats(20), floats(18, 1), floats(24, 1, 1), floats(2, 1, 1, 1)]) for op in ("Sum", "Max")),
    *(call(op, [floats(*S)], axis=axis) for op in ("Softmax", "LogSoftmax", "Hardmax") for axis in (0, 1, 2)),
    *(call(op, [floats(*S)], axis=1, opset=11) for op in ("Softmax", "LogSoftmax")),
    *(call("LRN", [floats(*x)], size=size) for x in (X, (3, 8, 33, 31)) for size in (3, 5)),
    *(call("MeanVarianceNormalization", [floats(*X)], axes=axes) for axes in ([0, 2, 3], [2, 3], [1], [3])),
    *(call("BatchNormalization", [floats(2, c, 9, 9), *[floats(c)] * 4], "111", training_mode=1) for c in (24, 300)),
    call("BatchNormalization", [floats(*X), *[floats(24)] * 4]),
    call("LayerNormalization", [floats(*S), floats(50), floats(50)], "111"),
    call("BiasGelu", [floats(*X), floats(20)], **MS),
    call("FusedConv", [floats(*X), floats(8, 24, 3, 3)], kernel_shape=[3, 3], activation="Relu", **MS),
]

AT_MOST = [
    call("Einsum", given, equation=equation)
    for equation, given in (
        ("bhij,bjhd->bihd", [floats(2, 4, 9, 9), floats(2, 9, 4, 16)]),
        ("bihd,bjhd->bhij", [floats(2, 9, 4, 16), floats(2, 9, 4, 16)]),
        ("bch,bhw->bcw", [floats(2, 24, 18), floats(2, 18, 20)]),
        ("bch,hw->bcw", [floats(2, 24, 18), floats(18, 20)]),
        ("bch,hw->wcb", [floats(2, 24, 18), floats(18, 20)]),
        ("i,j->ij", [floats(24), floats(18)]),
        ("i,j->ji", [floats(240), floats(180)]),
        ("bch->bhc", [floats(2, 24, 18)]),
        ("bch,bch->bc", [floats(2, 24, 18), floats(2, 24, 18)]),
        ("ab,bc,cd->ad", [floats(24, 18), floats(18, 20), floats(20, 5)]),
        ("ab,bc,cd->da", [floats(4, 18), floats(18, 20), floats(20, 50)]),
        ("...ij,...jk->...ki", [floats(2, 9, 4), floats(2, 4, 16)]),
    )
]


def nothing_calls() -> list[Call]:
    x, one = floats(*X), [floats(*S)]
    # fmt: off
    alone = [
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
        "Floor", "Gelu", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "HardSigmoid", "IsInf", "IsNaN",
        "LeakyRelu", "Log", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin",
        "Sinh", "Size", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu", "RandomNormalLike",
        "RandomUniformLike", "Dropout", "NonZero",
    ]
    pairs = ["Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]
    reduced = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
    # fmt: on
    along = constant([0, 2]), constant([1])
    return [
        *(call(op, [x]) for op in alone),
        *(call(op, [x, floats(24, 1, 1)]) for op in pairs),
        *(call(op, [truth(*X), truth(24, 1, 1)]) for op in ("And", "Or", "Xor")),
        *(call(op, [whole(*X), whole(24, 1, 1)]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
        *(call(f"Reduce{op}", [floats(4, 5, 6, 7), axes]) for op in reduced for axes in along),
        *(call(op, one, axis=axis) for op in ("ArgMax", "ArgMin", "LpNormalization") for axis in (0, 1, 2)),
        *(call(op, [x], **MS) for op in ("FastGelu", "QuickGelu")),
        *(call("TopK", [floats(40, 500), constant([k])], "11") for k in (1, 3, 100, 500)),
        *(call("TopK", [floats(40, 500), constant([k])], "11", axis=0) for k in (1, 3, 20)),
        *(call("CumSum", [floats(*S), constant(axis)], reverse=1, exclusive=1) for axis in (0, 1, 2)),
        *(call("CumSum", [floats(*S), constant(axis)]) for axis in (0, 1, 2)),
        *(call(op, [floats(3, 5, 5)], **said) for op, said in (("Det", {}), ("Inverse", MS))),
        *(call(op, [], shape=[40, 50]) for op in ("RandomNormal", "RandomUniform")),
        call("Not", [truth(*X)]),
        call("BitwiseNot", [whole(*X)]),
        call("BitShift", [bytes_of(*X), bytes_of()], direction="LEFT"),
        call("Mod", [x, floats(24, 1, 1)], fmod=1),
        call("Clip", [x, floats(), floats()]),
        call("Cast", [x], to=TensorProto.INT64),
        call("AffineGrid", [floats(2, 2, 3), constant([2, 3, 9, 10])]),
        call("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        call("LpPool", [x], kernel_shape=[2, 2]),
        call("MaxPool", [x], "11", kernel_shape=[3, 3], strides=[2, 2]),
        call("MaxUnpool", [floats(2, 8, 4, 4), whole(2, 8, 4, 4)], kernel_shape=[2, 2], strides=[2, 2]),
        call("Col2Im", [floats(2, 32, 323), constant([18, 20]), constant([2, 2])]),
        call("Compress", [floats(*S), truth(4)], axis=0),
        call("Concat", [floats(*S)] * 5, axis=1),
        call("ConstantOfShape", [constant([40, 50])]),
        call("DepthToSpace", [floats(2, 16, 9, 9)], blocksize=2),
        call("SpaceToDepth", [x], blocksize=2),
        call("QuantizeLinear", [floats(*S), *SCALED]),
        call("DequantizeLinear", [bytes_of(*S), *SCALED]),
        call("DynamicQuantizeLinear", [floats(*S)], "111"),
        call("MatMulInteger", [bytes_of(*S), bytes_of(50, 40)]),
        call("MatMulIntegerToFloat", [bytes_of(*S), bytes_of(50, 40), number(0.1), number(0.1), zero(), zero()], **MS),
        call("QLinearAdd", [bytes_of(*S), *SCALED, bytes_of(*S), *SCALED, *SCALED], **MS),
        call("Expand", [floats(1, 500), constant([40, 500])]),
        call("Tile", [floats(*S), constant([2, 1, 3])]),
        call("EyeLike", [floats(24, 18)]),
        call("Gather", [floats(*S), whole(11)], axis=1),
        call("GatherElements", [floats(*S), whole(3, 5, 7)], axis=1),
        call("GatherND", [floats(*S), whole(400, 2)]),
        call("ScatterElements", [floats(*S), whole(3, 5, 7), floats(3, 5, 7)], axis=1, reduction="add"),
        call("ScatterND", [floats(*S), whole(9, 1), floats(9, 30, 50)]),
        call("Gemm", [floats(24, 20), floats(18, 24), floats(18)], transA=1, transB=1, alpha=0.5),
        call("MatMul", [floats(*S), floats(4, 50, 40)]),
        call("FusedMatMul", [floats(4, 50, 30), floats(4, 50, 40)], transA=1, **MS),
        call("GridSample", [x, floats(2, 9, 10, 2)]),
        call("InstanceNormalization", [x, floats(24), floats(24)]),
        call("RMSNormalization", [floats(*S), floats(50)], opset=23),
        call("SimplifiedLayerNormalization", [floats(*S), floats(50)], opset=1),
        call("SkipLayerNormalization", [floats(*S), floats(*S), floats(50), floats(50)], **MS),
        call("HannWindow", [constant(16)]),
        call("OneHot", [whole(40), constant([10]), constant([0, 1], np.float32)]),
        call("Pad", [floats(*S), constant([0, 1, 2, 0, 1, 2])], mode="reflect"),
        call("Range", [constant(0), constant(500), constant(1)]),
        call("ReverseSequence", [floats(*S), constant(np.arange(1, 31) % 4 + 1)], time_axis=0, batch_axis=1),
        call("RoiAlign", [x, floats(5, 4), whole(5)], output_height=3, output_width=3),
        call("RotaryEmbedding", [floats(2, 4, 9, 16), floats(9, 8), floats(9, 8), whole(2, 9)], opset=23),
        call("Slice", [floats(*S), constant([-1]), constant([-100]), constant([1]), constant([-1])]),
        call("Split", [floats(*S), constant([1, 29])], "11", axis=1),
        call("Transpose", [floats(*S)], perm=[2, 0, 1]),
        call("Trilu", [floats(*S)]),
        call("Unique", [floats(400)], "1111"),
    ]


IN_NOTHING = nothing_calls()
