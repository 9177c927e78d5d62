"""Random training-like models of what onnxruntime's optimizers look for: patterns that it fuses, eliminates or pushes
past each other, Dropouts with masks, optional outputs; every activation is read again on the way back."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.remat_cli.fusing_others import OTHERS

ROWS, WIDTH, HEADS = 24, 32, 4
SHAPE = (2, ROWS, WIDTH)


class FusingModel:
    """`blocks` forward, each a pattern from and to SHAPE, then as many products backward."""

    rows, width, shape = ROWS, WIDTH, SHAPE

    def __init__(self, seed: int, blocks: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.inputs: dict[str, tuple[int, ...]] = {"x": SHAPE}
        self.saved: list[str] = []  # of SHAPE, read again on the way back
        self.outputs: list[str] = []
        self.seed = seed
        value = "x"
        for _ in range(blocks):
            pattern = self.random.choice(PATTERNS)
            value = pattern(self, value)
            self.saved.append(value)
        self._back(value)

    def add(self, kind: str, inputs: list[str], outputs: int = 1, **attributes: object) -> str:
        names = [f"v{len(self.nodes)}_{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"n{len(self.nodes)}_{kind}", **attributes))
        return names[0]

    def last(self, place: int) -> str:
        return str(self.nodes[-1].output[place])

    def constant(self, array: object, kind: type = np.float32) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.array(array, kind)
        return name

    def weight(self, *shape: int) -> str:
        """Now an initializer, which is packed and folded, now an input, as training programs have it."""
        array = self.numbers.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]))
        if self.random.random() < 0.5:
            return self.constant(array)
        name = f"w{len(self.inputs)}"
        self.inputs[name] = shape
        return name

    def _back(self, value: str) -> None:
        for place, saved in reversed(list(enumerate(self.saved))):
            value = self.add("Mul", [value, self.add("Tanh", [saved])])
            if self.random.random() < 0.5:
                flat = self.add("Reshape", [value, self.constant((2 * ROWS, WIDTH), np.int64)])
                turned = self.add("Transpose", [flat], perm=[1, 0])
                again = self.add("Reshape", [saved, self.constant((2 * ROWS, WIDTH), np.int64)])
                self.outputs.append(self.add("MatMul", [turned, again]))
            if self.random.random() < 0.5:
                turned = self.add("Transpose", [value], perm=[0, 2, 1])
                self.outputs.append(self.add("ReduceSum", [turned, self.constant([0, 2], np.int64)], keepdims=0))
                if place % 2:
                    value = self.add("Transpose", [turned], perm=[0, 2, 1])
        self.outputs.append(value)

    def model(self) -> onnx.ModelProto:
        told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.inputs.items()]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in dict.fromkeys(self.outputs)]
        stored = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, f"fusing{self.seed}", told, ends, stored)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model)


def _dense(m: FusingModel, x: str) -> str:
    """MatMul and Add on rows: a Gemm, with an activation."""
    flat = m.add("Reshape", [x, m.constant((2 * ROWS, WIDTH), np.int64)])
    product = m.add("Add", [m.add("MatMul", [flat, m.weight(WIDTH, WIDTH)]), m.weight(WIDTH)])
    active = m.add(m.random.choice(["Relu", "Sigmoid", "Tanh", "LeakyRelu"]), [product])
    return m.add("Reshape", [active, m.constant(SHAPE, np.int64)])


def _product(m: FusingModel, x: str) -> str:
    """A scaled product with a transposed weight, and a bias that is skipped past."""
    turned = m.add("Transpose", [m.weight(WIDTH, WIDTH)], perm=[1, 0])
    scaled = m.add("Mul", [m.add("MatMul", [x, turned]), m.constant(0.5)])
    return m.add("Add", [m.add("Add", [scaled, m.weight(WIDTH)]), x])


def _gelu(m: FusingModel, x: str) -> str:
    biased = m.add("Add", [x, m.weight(WIDTH)])
    inner = m.add("Add", [m.add("Erf", [m.add("Div", [biased, m.constant(np.sqrt(2))])]), m.constant(1.0)])
    if m.random.random() < 0.5:
        return m.add("Mul", [m.add("Mul", [biased, inner]), m.constant(0.5)])
    return m.add("Mul", [biased, m.add("Mul", [inner, m.constant(0.5)])])


def _fast_gelu(m: FusingModel, x: str) -> str:
    cube = m.add("Mul", [m.add("Pow", [x, m.constant(3.0)]), m.constant(0.044715)])
    inner = m.add("Mul", [m.add("Add", [x, cube]), m.constant(0.7978845834732056)])
    outer = m.add("Add", [m.add("Tanh", [inner]), m.constant(1.0)])
    return m.add("Mul", [m.add("Mul", [x, m.constant(0.5)]), outer])


def _quick_gelu(m: FusingModel, x: str) -> str:
    return m.add("Mul", [x, m.add("Sigmoid", [m.add("Mul", [x, m.constant(1.702)])])])


def _norm(m: FusingModel, x: str) -> str:
    """A layer norm in its primitives, behind a sum that it may be fused with."""
    summed = m.add("Add", [x, m.saved[-1] if m.saved else x])
    centred = m.add("Sub", [summed, m.add("ReduceMean", [summed, m.constant([-1], np.int64)])])
    spread = m.add("ReduceMean", [m.add("Pow", [centred, m.constant(2.0)]), m.constant([-1], np.int64)])
    scale = m.add("Sqrt", [m.add("Add", [spread, m.constant(1e-5)])])
    m.saved.append(summed)
    return m.add("Add", [m.add("Mul", [m.add("Div", [centred, scale]), m.weight(WIDTH)]), m.weight(WIDTH)])


def _layer_norm(m: FusingModel, x: str) -> str:
    """Its mean and deviation are optional, and read on the way back, or not at all."""
    out = m.add("LayerNormalization", [x, m.weight(WIDTH), m.weight(WIDTH)], m.random.choice([1, 3]))
    if len(m.nodes[-1].output) == 3 and m.random.random() < 0.5:
        mean, spread = m.last(1), m.last(2)
        m.saved.append(m.add("Mul", [m.add("Sub", [x, mean]), spread]))
    return out


def _dropout(m: FusingModel, x: str) -> str:
    out = m.add("Dropout", [x, m.constant(0.3), m.constant(True, np.bool_)], 2, seed=len(m.nodes))
    m.saved.append(m.add("Where", [m.last(1), x, m.constant(0.0)]))
    return out


def _idle_dropout(m: FusingModel, x: str) -> str:
    """The identity, which is eliminated; and so are these casts."""
    same = m.add("Identity", [m.add("Dropout", [x, m.constant(0.3), m.constant(False, np.bool_)])])
    return m.add("Cast", [m.add("Cast", [same], to=TensorProto.DOUBLE)], to=TensorProto.FLOAT)


def _attention(m: FusingModel, x: str) -> str:
    size = WIDTH // HEADS

    def heads(perm: list[int]) -> str:
        made = m.add("Add", [m.add("MatMul", [x, m.weight(WIDTH, WIDTH)]), m.weight(WIDTH)])
        return m.add("Transpose", [m.add("Reshape", [made, m.constant((2, ROWS, HEADS, size), np.int64)])], perm=perm)

    query, key, value = heads([0, 2, 1, 3]), heads([0, 2, 3, 1]), heads([0, 2, 1, 3])
    scores = m.add("Div", [m.add("MatMul", [query, key]), m.constant(np.sqrt(size))])
    shown = m.constant(np.tril(np.ones((1, 1, ROWS, ROWS), np.bool_)), np.bool_)
    weights = m.add("Softmax", [m.add("Where", [shown, scores, m.constant(-1e9)])], axis=-1)
    if m.random.random() < 0.5:
        weights = m.add("Dropout", [weights, m.constant(0.1), m.constant(True, np.bool_)], 2, seed=len(m.nodes))
        m.saved.append(m.add("Mul", [x, m.add("ReduceSum", [m.add("Cast", [m.last(1)], to=1)], keepdims=0)]))
    mixed = m.add("Transpose", [m.add("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    return m.add("Add", [m.add("Reshape", [mixed, m.constant(SHAPE, np.int64)]), x])


def _conv(m: FusingModel, x: str) -> str:
    """Conv, a bias, a sum and an activation in one; now with a norm that is folded into it."""
    wide = m.add("Unsqueeze", [x, m.constant([1], np.int64)])
    kernel = m.weight(4, 1, 3, 3) if m.random.random() < 0.5 else m.constant(m.numbers.random((4, 1, 3, 3)))
    made = m.add("Conv", [wide, kernel], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    if m.random.random() < 0.5:
        numbers = [m.constant(m.numbers.random(4) + 0.5) for _ in range(4)]
        made = m.add("BatchNormalization", [made, *numbers])
    elif m.random.random() < 0.5:
        made = m.add("Add", [made, m.constant(m.numbers.random((4, 1, 1)))])
    made = m.add(m.random.choice(["Relu", "Clip", "Sigmoid"]), [made])
    return m.add("ReduceMean", [made, m.constant([1], np.int64)], keepdims=0)


def _parts(m: FusingModel, x: str) -> str:
    half = [
        m.add("Slice", [x, *(m.constant([number], np.int64) for number in (start, start + WIDTH // 2, 2))])
        for start in (0, WIDTH // 2)
    ]
    return m.add("Concat", [m.add("Relu", [half[1]]), half[0]], axis=2)


def _moved(m: FusingModel, x: str) -> str:
    """Transposes that can be pushed through what lies between them, and one that cannot."""
    turned = m.add("Transpose", [x], perm=[0, 2, 1])
    summed = m.add("ReduceSum", [turned, m.constant([1], np.int64)], keepdims=1)
    back = m.add("Transpose", [m.add("Softmax", [m.add("Add", [turned, summed])], axis=1)], perm=[0, 2, 1])
    m.saved.append(m.add("Transpose", [m.add("Neg", [turned])], perm=[0, 2, 1]))
    return m.add("Mul", [back, x])


def _noops(m: FusingModel, x: str) -> str:
    """What is eliminated: sums with zero, products with one, reshapes in a row, an Expand to the same shape."""
    same = m.add("Mul", [m.add("Add", [x, m.constant(0.0)]), m.constant(1.0)])
    flat = m.add("Reshape", [same, m.constant((2, -1), np.int64)])
    again = m.add("Expand", [m.add("Reshape", [flat, m.constant(SHAPE, np.int64)]), m.constant([1, 1, 1], np.int64)])
    return m.add("Clip", [m.add("Relu", [again]), m.constant(0.0), m.constant(6.0)])


PATTERNS: tuple[Callable[[FusingModel, str], str], ...] = (
    *(_dense, _product, _gelu, _fast_gelu, _quick_gelu, _norm, _layer_norm, _dropout, _idle_dropout),
    *(_attention, _conv, _parts, _moved, _noops),
    *OTHERS,
)


def fusing_model(seed: int, blocks: int = 7) -> onnx.ModelProto:
    return FusingModel(seed, blocks).model()
