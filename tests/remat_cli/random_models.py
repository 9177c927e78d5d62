"""Random ONNX models with everything that decides what lives in memory: views, ops that overwrite what they read,
outputs that nobody reads, outputs that are read on, resident tensors that are looked at through views."""

from __future__ import annotations

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPES = {"plain": (4, 6), "view": (2, 12)}
UNARY = ("Neg", "Exp", "Relu", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Elu", "Clip", "Erf", "Softplus", "Dropout")


class Builder:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.pool: list[str] = []  # values of the plain shape
        self.others: list[str] = []  # values of any other shape, of use as outputs
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self) -> str:
        """Mostly something recent, so that values die along the way."""
        return self.random.choice(self.pool[-4:] if self.random.random() < 0.7 else self.pool)

    def add(self, op_type: str, inputs: list[str], outputs: list[str], **attributes: object) -> None:
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=f"n{len(self.nodes)}", **attributes))

    def step(self) -> None:
        choice = self.random.choice(["unary"] * 6 + ["add", "add", "view", "view", "norm", "split", "pool", "cast"])
        getattr(self, f"_{choice}")()

    def _unary(self) -> None:
        out = self.fresh()
        self.add(self.random.choice(UNARY), [self.pick()], [out])
        self.pool.append(out)

    def _add(self) -> None:
        out = self.fresh()
        self.add(self.random.choice(["Add", "Mul"]), [self.pick(), self.pick()], [out])
        self.pool.append(out)

    def _view(self) -> None:
        middle, out = self.fresh(), self.fresh()
        kind = self.random.choice(["Reshape", "Flatten", "Identity", "Unsqueeze"])
        if kind == "Reshape":
            self.add("Reshape", [self.pick(), "to_view"], [middle])
            if self.random.random() < 0.5:
                self.add("Relu", [middle], [middle + "r"])
                middle += "r"
            self.add("Reshape", [middle, "to_plain"], [out])
        elif kind == "Unsqueeze":
            self.add("Unsqueeze", [self.pick(), "zero"], [middle])
            self.add("Squeeze", [middle, "zero"], [out])
        else:
            self.add(kind, [self.pick()], [out])
        self.pool.append(out)

    def _norm(self) -> None:
        """Mean and deviation are optional outputs; here they are asked for and not read."""
        out, mean, spread = self.fresh(), self.fresh(), self.fresh()
        outputs = self.random.choice([[out], [out, mean, spread], [out, "", spread]])
        self.add("LayerNormalization", [self.pick(), "scale"], outputs)
        self.pool.append(out)

    def _split(self) -> None:
        left, right, out = self.fresh(), self.fresh(), self.fresh()
        self.add("Split", [self.pick()], [left, right], axis=1, num_outputs=2)
        self.add("Concat", [left, self.random.choice([left, right])], [out], axis=1)
        self.pool.append(out)

    def _pool(self) -> None:
        """Indices that nobody reads stay to the end."""
        wide, pooled, where, out = self.fresh(), self.fresh(), self.fresh(), self.fresh()
        self.add("Unsqueeze", [self.pick(), "zero"], [wide])
        self.add("MaxPool", [wide], [pooled, where], kernel_shape=[3], pads=[1, 1])
        self.add("Squeeze", [pooled, "zero"], [out])
        self.pool.append(out)

    def _cast(self) -> None:
        middle, out = self.fresh(), self.fresh()
        to = self.random.choice([TensorProto.INT32, TensorProto.INT64])
        self.add("Cast", [self.pick()], [middle], to=to)
        self.add("Cast", [middle], [out], to=TensorProto.FLOAT)
        self.pool.append(out)


def random_model(seed: int, count: int = 14) -> onnx.ModelProto:
    builder = Builder(seed)
    builder.pool = ["x", "w"]
    for _ in range(count):
        builder.step()
    made = [name for node in builder.nodes for name in node.output if name in builder.pool]
    outputs = sorted({made[-1], *builder.random.sample(made, min(len(made), 3))})
    plain = list(SHAPES["plain"])
    rng = np.random.default_rng(seed)
    weights = {
        "w": rng.random(plain, np.float32),
        "scale": np.ones(plain[1], np.float32),
        "to_view": np.array(SHAPES["view"], np.int64),
        "to_plain": np.array(plain, np.int64),
        "zero": np.array([0], np.int64),
    }
    graph = helper.make_graph(
        builder.nodes,
        f"random{seed}",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, plain)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, plain) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
