"""A chain of products and Tanhs, forward and back by hand, with some ops of another kind at one place in it.

Invariant: every activation is read again on the way back, so that there is something to compute again; what the
twist's own gradient would be is left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSET = 18
IR = {18: 9, 19: 9, 20: 9, 21: 10, 23: 11, 24: 11}


class Chain:
    def __init__(self, kind: str, seed: int) -> None:
        self.random = random.Random(f"{kind} {seed}")
        self.numbers = np.random.default_rng(self.random.getrandbits(32))
        self.rows, self.width = self.random.choice([(256, 64), (192, 48), (128, 96)])
        self.name = f"{kind}_{seed}"
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, onnx.TensorProto] = {}
        self.inputs = [helper.make_tensor_value_info("x", FLOAT, [self.rows, self.width])]
        self.outputs: list[onnx.ValueInfoProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.domains: set[str] = set()
        self.told: list[onnx.ValueInfoProto] = []
        self.saved: list[str] = []
        self.sparse: list[onnx.SparseTensorProto] = []
        self.opset = OPSET  # a twist may want a newer one

    def add(self, kind: str, inputs: list[str], outputs: int = 1, **attributes: object) -> str:
        """A node; the name of its first result. The others are in `last`."""
        self.last = [f"v{len(self.nodes)}_{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, self.last, f"n{len(self.nodes)}_{kind}", **attributes))
        return self.last[0]

    def constant(self, array: object, kind: type = np.float32, name: str = "") -> str:
        name = name or f"c{len(self.weights)}"
        self.weights[name] = numpy_helper.from_array(np.array(array, kind), name)
        return name

    def weight(self, *shape: int, name: str = "") -> str:
        return self.constant(self.numbers.standard_normal(shape) / np.sqrt(shape[0]), name=name)

    def shape(self, *sizes: int) -> str:
        return self.constant(sizes, np.int64)

    def returns(self, name: str, kind: int = FLOAT) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def tell(self, name: str) -> str:
        """That a value is of the shape that the chain's are, where onnx does not find out."""
        self.told.append(helper.make_tensor_value_info(name, FLOAT, [self.rows, self.width]))
        return name

    def with_twist(self, twist: Twist) -> onnx.ModelProto:
        layers = self.random.randint(5, 8)
        place = self.random.randrange(1, layers - 1)
        value = "x"
        weights = [self.weight(self.width, self.width, name=f"w{number}") for number in range(layers)]
        for number, weight in enumerate(weights):
            value = self.add("Tanh", [self.add("MatMul", [value, weight])])
            if number == place:
                value = twist(self, value)
            self.saved.append(value)
        self.returns(self.add("ReduceMean", [value], keepdims=0))
        self._back(value, weights)
        return self._model()

    def _back(self, value: str, weights: list[str]) -> None:
        one = self.constant(1.0)
        for number in reversed(range(len(weights))):
            saved, before = self.saved[number], self.saved[number - 1] if number else "x"
            slope = self.add("Sub", [one, self.add("Mul", [saved, saved])])
            value = self.add("Mul", [value, slope])
            self.returns(self.add("MatMul", [self.add("Transpose", [before], perm=[1, 0]), value]))
            if number:
                value = self.add("MatMul", [value, self.add("Transpose", [weights[number]], perm=[1, 0])])

    def _model(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, list(self.weights.values()))
        graph.value_info.extend(self.told)
        graph.sparse_initializer.extend(self.sparse)
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(name, 1) for name in sorted(self.domains))]
        return helper.make_model(graph, opset_imports=opsets, functions=self.functions, ir_version=IR[self.opset])


Twist = Callable[[Chain, str], str]
