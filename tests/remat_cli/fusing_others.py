"""More of what onnxruntime's optimizers look for, each a pattern from and to the model's shape: norms and embeddings,
quantized products, layouts, computed shapes, shared constants, and Transposes in the way of most ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

if TYPE_CHECKING:
    from tests.remat_cli.fusing_models import FusingModel

INT64, INT8, UINT8 = np.int64, np.int8, np.uint8


def _whole(m: FusingModel, *numbers: int) -> str:
    return m.constant(numbers, INT64)


def _root_norm(m: FusingModel, x: str) -> str:
    """Simplified layer norms, in their primitives."""
    mean = m.add("ReduceMean", [m.add("Pow", [x, m.constant(2.0)]), _whole(m, -1)])
    scale = m.add("Sqrt", [m.add("Add", [mean, m.constant(1e-6)])])
    return m.add("Mul", [m.add("Div", [x, scale]), m.weight(m.width)])


def _skipped_norm(m: FusingModel, x: str) -> str:
    """A sum with a bias, normalized; the sum itself is read as well, or not."""
    summed = m.add("Add", [m.add("Add", [x, m.weight(m.width)]), m.saved[-1] if m.saved else x])
    if m.random.random() < 0.5:
        m.saved.append(summed)
    return m.add("LayerNormalization", [summed, m.weight(m.width), m.weight(m.width)])


def _embedded(m: FusingModel, x: str) -> str:
    words = m.constant(m.numbers.integers(0, 50, (2, m.rows)), INT64)
    places = m.constant(np.tile(np.arange(m.rows), (2, 1)), INT64)
    both = [m.add("Gather", [m.weight(50, m.width), index]) for index in (words, places)]
    summed = m.add("Add", both)
    return m.add("Add", [x, m.add("LayerNormalization", [summed, m.weight(m.width), m.weight(m.width)])])


def _masked(m: FusingModel, x: str) -> str:
    """A softmax of what a mask was added to, and a choice by what is not."""
    mask = m.constant(np.where(m.numbers.random((1, m.rows, m.width)) < 0.2, -1e4, 0.0))
    soft = m.add("Softmax", [m.add("Add", [x, mask])], axis=-1)
    other = m.add("Not", [m.add("Greater", [soft, m.constant(0.05)])])
    return m.add("Where", [other, x, soft])


def _gathered(m: FusingModel, x: str) -> str:
    """A Gather of a range is a Slice, one of single places a Split."""
    half = m.width // 2
    low = m.add("Gather", [x, m.constant(np.arange(half), INT64)], axis=2)
    high = m.add("Gather", [x, m.constant(np.arange(half, m.width), INT64)], axis=2)
    ends = [m.add("Gather", [x, m.constant(place, INT64)], axis=1) for place in (0, 1)]
    m.saved.append(m.add("Add", [x, m.add("Unsqueeze", [m.add("Mul", ends), _whole(m, 1)])]))
    return m.add("Concat", [high, low], axis=2)


def _computed_shape(m: FusingModel, x: str) -> str:
    """A shape put together from parts of another, as exporters write it."""
    sizes = m.add("Shape", [x])
    rows = m.add("Gather", [sizes, m.constant([0], INT64)])
    flat = m.add("Reshape", [x, m.add("Concat", [rows, _whole(m, -1)], axis=0)])
    one = m.add("Mul", [flat, m.constant(2.0)])
    return m.add("Reshape", [one, m.add("Concat", [rows, _whole(m, m.rows, m.width)], axis=0)])


def _quantized(m: FusingModel, x: str) -> str:
    """Quantized before and after an op that has an integer kernel, or hands the integers through."""
    kind = m.random.choice([INT8, UINT8])
    scale = [m.constant(1 / 32), m.constant(0 if kind is INT8 else 128, kind)]

    def rounded(value: str) -> str:
        return m.add("DequantizeLinear", [m.add("QuantizeLinear", [value, *scale]), *scale])

    read = rounded(m.add("Relu", [x]) if m.random.random() < 0.5 else x)
    match m.random.randrange(5):
        case 0:
            weight = m.constant(m.numbers.integers(-64, 64, (m.width, m.width)), INT8)
            by = [m.constant(1 / 128), m.constant(0, INT8)]
            made = m.add("MatMul", [read, m.add("DequantizeLinear", [weight, *by])])
        case 1:
            made = m.add("Add", [read, rounded(m.saved[-1] if m.saved else x)])
        case 2:
            turned = rounded(m.add("Transpose", [read], perm=[0, 2, 1]))
            made = m.add("Transpose", [turned], perm=[0, 2, 1])
        case 3:
            made = m.add("Softmax", [read], axis=-1)
        case _:
            made = m.add("Concat", [read, read], axis=2)
            made = m.add("Slice", [rounded(made), _whole(m, 0), _whole(m, m.width), _whole(m, 2)])
    return m.add("Add", [rounded(made), x])


def _integer_product(m: FusingModel, x: str) -> str:
    read = m.add("DynamicQuantizeLinear", [x], 3)
    scale, zero = m.last(1), m.last(2)
    weight = m.constant(m.numbers.integers(-64, 64, (m.width, m.width)), INT8)
    made = m.add("Cast", [m.add("MatMulInteger", [read, weight, zero])], to=TensorProto.FLOAT)
    made = m.add("Mul", [made, m.add("Mul", [scale, m.constant(1 / 256)])])
    return m.add("Add", [made, m.constant(m.numbers.random(m.width))]) if m.random.random() < 0.5 else made


def _cast_chain(m: FusingModel, x: str) -> str:
    half = m.add("Cast", [x], to=TensorProto.FLOAT16)
    made = m.add("Mul", [half, m.constant(0.5, np.float16)])
    twice = m.add("Cast", [m.add("Cast", [made], to=TensorProto.FLOAT)], to=TensorProto.DOUBLE)
    return m.add("Cast", [twice], to=TensorProto.FLOAT)


def _shared_constants(m: FusingModel, x: str) -> str:
    made = x
    for kind in ("Mul", "Add", "Sub", "Div"):
        made = m.add(kind, [made, m.constant(1.25)])
    return m.add("Mul", [m.add("Div", [m.constant(1.0), m.add("Exp", [made])]), x])


def _space_to_depth(m: FusingModel, x: str) -> str:
    """Every other element, four times, joined: what a detector's first layer does."""
    image = m.add("Unsqueeze", [x, _whole(m, 1)])
    parts = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        ends, axes, steps = (_whole(m, *numbers) for numbers in ((9999, 9999), (2, 3), (2, 2)))
        parts.append(m.add("Slice", [image, _whole(m, row, column), ends, axes, steps]))
    return m.add("Reshape", [m.add("Tanh", [m.add("Concat", parts, axis=1)]), _whole(m, *m.shape)])


def _gemms(m: FusingModel, x: str) -> str:
    """Gemms whose operands or results are transposed, and added to."""
    flat = m.add("Reshape", [x, _whole(m, 2 * m.rows, m.width)])
    turned = m.add("Transpose", [flat], perm=[1, 0])
    made = m.add("Gemm", [turned, m.weight(m.width, m.width)], transA=1, alpha=0.5)
    made = m.add("Add", [made, m.weight(2 * m.rows, m.width)])
    again = m.add("Transpose", [m.add("Gemm", [m.weight(m.width, m.width), made], transA=1, transB=1)], perm=[1, 0])
    return m.add("Reshape", [m.add("Relu", [again]), _whole(m, *m.shape)])


def _image(m: FusingModel, x: str) -> str:
    """Two Convs with pooling between, whose layout is changed for both; the pool's indices are read, or not."""
    image = m.add("Reshape", [x, _whole(m, 2, 1, m.rows, m.width)])
    padded = m.add("Pad", [image, _whole(m, 0, 0, 1, 1, 0, 0, 1, 1)])
    first = m.add("Conv", [padded, m.constant(m.numbers.random((16, 1, 3, 3)))], kernel_shape=[3, 3])
    first = m.add("Relu", [m.add("Mul", [first, m.constant(m.numbers.random((16, 1, 1)))])])
    pooled = m.add("MaxPool", [first], m.random.choice([1, 2]), kernel_shape=[2, 2], strides=[2, 2])
    if len(m.nodes[-1].output) == 2:
        picked = m.add("ReduceMax", [m.last(1), _whole(m, 1, 2, 3)], keepdims=0)
        number = m.add("Cast", [m.add("ReduceMax", [picked], keepdims=0)], to=TensorProto.FLOAT)
        m.saved.append(m.add("Add", [x, m.add("Div", [number, m.constant(1e6)])]))
    second = m.add("Conv", [pooled, m.constant(m.numbers.random((16, 16, 1, 1)))], kernel_shape=[1, 1])
    mean = m.add("Reshape", [m.add("GlobalAveragePool", [second]), _whole(m, 2, 16)])
    wide = m.add("Unsqueeze", [m.add("Concat", [mean] * (m.width // 16), axis=1), _whole(m, 1)])
    return m.add("Mul", [x, m.add("Sigmoid", [wide])])


def _in_the_way(m: FusingModel, x: str) -> str:
    """A Transpose before an op through which it can be pushed, and its way back after it."""
    turned = m.add("Transpose", [x], perm=[2, 0, 1])
    match m.random.randrange(7):
        case 0:
            made = m.add(
                "Concat", [turned, m.add("Transpose", [m.saved[-1] if m.saved else x], perm=[2, 0, 1])], axis=1
            )
            made = m.add("Split", [made], 2, axis=1, num_outputs=2)
        case 1:
            made = m.add("Squeeze", [m.add("Unsqueeze", [turned, _whole(m, 0)]), _whole(m, 0)])
        case 2:
            made = m.add("Sub", [turned, m.add("ReduceMean", [turned, _whole(m, 0, 2)], keepdims=1)])
        case 3:
            made = m.add("Slice", [m.add("Pad", [turned, _whole(m, 0, 0, 1, 0, 0, 1)]), *_inner(m)])
        case 4:
            made = m.add("Add", [turned, m.weight(m.rows)])
        case 5:
            best = m.add("Cast", [m.add("ArgMax", [turned], axis=0, keepdims=1)], to=TensorProto.FLOAT)
            made = m.add("Add", [turned, best])
        case _:
            made = m.add("Where", [m.add("Greater", [turned, m.constant(0.0)]), turned, m.constant(0.1)])
    return m.add("Transpose", [made], perm=[1, 2, 0])


def _inner(m: FusingModel) -> list[str]:
    return [_whole(m, 1), _whole(m, m.rows + 1), _whole(m, 2)]


def _labelled(m: FusingModel, x: str) -> str:
    """A loss whose log-probabilities are optional, and read on the way back, or not."""
    flat = m.add("Reshape", [x, _whole(m, 2 * m.rows, m.width)])
    labels = m.constant(m.numbers.integers(0, m.width, 2 * m.rows), INT64)
    loss = m.add("SoftmaxCrossEntropyLoss", [flat, labels], m.random.choice([1, 2]), reduction="mean")
    if len(m.nodes[-1].output) == 2:
        m.saved.append(m.add("Reshape", [m.last(1), _whole(m, *m.shape)]))
    return m.add("Mul", [x, loss])


OTHERS: tuple[Callable[[FusingModel, str], str], ...] = (
    *(_root_norm, _skipped_norm, _embedded, _masked, _gathered, _computed_shape, _quantized, _integer_product),
    *(_cast_chain, _shared_constants, _space_to_depth, _gemms, _image, _in_the_way, _labelled),
)
