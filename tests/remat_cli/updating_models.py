"""Random models that update their inputs, in the forms that exporters write, as soon as the last op has read the input;
some of what is updated is read on, and some of what reads an input is not needed for its update."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.remat_cli.random_models import SHAPES, Builder

STATE = ("w1", "w2", "w3")
VIEWS = {"Reshape", "Flatten", "Identity", "Unsqueeze", "Squeeze"}


class Updating(Builder):
    """A random model with updates of `STATE`; `updates` are its outputs, each with its input."""

    def __init__(self, seed: int, count: int = 12) -> None:
        super().__init__(seed)
        self.updates: dict[str, str] = {}
        self.pool = ["x", *STATE]
        for _ in range(count):
            self.step()
        for name in STATE:
            last = 1 + max((place for place, node in enumerate(self.nodes) if self._reads(node, name)), default=0)
            if last == 1:
                self.add("Mul", [name, self.pick()], [self.fresh()])
                self.pool.append(self.nodes[-1].output[0])
                last = len(self.nodes)
            self._update(name, last)

    def _reads(self, node: onnx.NodeProto, name: str) -> bool:
        behind = {name}
        for one in self.nodes:
            if one.op_type in VIEWS and one.input[0] in behind:
                behind.add(one.output[0])
        return not behind.isdisjoint(node.input)

    def _update(self, name: str, place: int) -> None:
        """Right after the last reader, of something that is made before; so the update need not be made from it."""
        before = [out for node in self.nodes[:place] for out in node.output if out in self.pool and out not in STATE]
        plain = [out for out in before if not self._is_view_of_state(out)] or ["x"]
        slope, kind = self.random.choice(plain), self.random.choice(("sgd", "where", "running", "copy", "cast", "own"))
        new = f"{name}_new"
        tail, self.nodes = self.nodes[place:], self.nodes[:place]
        if kind == "copy":
            self.add("Tanh", [slope], [f"{name}_kept"])
            self.add("Identity", [f"{name}_kept"], [new])
        elif kind == "own":
            self.add("Mul", [name, "rate"], [new])
        else:
            self.add("Mul", [slope, "rate"], [f"{name}_step"])
            if kind == "sgd":
                self.add("Sub", [name, f"{name}_step"], [new])
            elif kind == "running":
                self.add("Mul", [name, "keep"], [f"{name}_kept"])
                self.add("Add", [f"{name}_kept", f"{name}_step"], [new])
            elif kind == "cast":
                self.add("Cast", [name], [f"{name}_wide"], to=TensorProto.DOUBLE)
                self.add("Cast", [f"{name}_step"], [f"{name}_wide_step"], to=TensorProto.DOUBLE)
                self.add("Sub", [f"{name}_wide", f"{name}_wide_step"], [f"{name}_wide_new"])
                self.add("Cast", [f"{name}_wide_new"], [new], to=TensorProto.FLOAT)
            else:
                self.add("Sub", [name, f"{name}_step"], [f"{name}_moved"])
                self.add("Greater", [f"{name}_step", "rate"], [f"{name}_finite"])
                self.add("Where", [f"{name}_finite", name, f"{name}_moved"], [new])
        if self.random.random() < 0.5:  # what is updated is read on
            self.add("Neg", [new], [f"{name}_read"])
            self.pool.append(f"{name}_read")
        self.nodes += tail
        for number, node in enumerate(self.nodes):
            node.name = f"n{number}"
        self.updates[new] = name

    def _is_view_of_state(self, name: str) -> bool:
        return any(node.op_type in VIEWS and name in node.output for node in self.nodes)

    def model(self) -> onnx.ModelProto:
        made = [name for node in self.nodes for name in node.output if name in self.pool]
        ends = [name for name in made if not self._is_view_of_state(name)]
        outputs = [*dict.fromkeys([ends[-1], *self.random.sample(ends, min(len(ends), 2))]), *self.updates]
        plain = list(SHAPES["plain"])
        constants = {
            "scale": np.ones(plain[1], np.float32),
            "to_view": np.array(SHAPES["view"], np.int64),
            "to_plain": np.array(plain, np.int64),
            "zero": np.array([0], np.int64),
            "rate": np.array(0.1, np.float32),
            "keep": np.array(0.9, np.float32),
        }
        graph = helper.make_graph(
            self.nodes,
            "updating",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, plain) for name in ("x", *STATE)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, plain) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
