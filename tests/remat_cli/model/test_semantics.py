"""The tables against ONNX Runtime: each op alone in a strict session, its operands made by ops that share nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from remat_cli.ingest import graph_of
from remat_cli.model import semantics
from tests.remat_cli.strict_session import session, trace

X = np.ones((4, 8), np.float32)
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Case:
    op_type: str
    operands: tuple[np.ndarray, ...] = (X,)
    outputs: int = 1
    domain: str = ""
    opset: int = 21
    constants: dict[int, np.ndarray] = field(default_factory=dict)  # operands that are weights, by place
    attributes: dict[str, Any] = field(default_factory=dict)

    def model(self, read_on: bool) -> onnx.ModelProto:
        """Expand makes every operand afresh; with `read_on`, they are read again after the op."""
        names = [f"a{place}" for place in range(len(self.operands) + len(self.constants))]
        made = dict(zip((n for p, n in enumerate(names) if p not in self.constants), self.operands, strict=True))
        weights = {names[place]: array for place, array in self.constants.items()}
        weights |= {f"{name}_shape": np.array(array.shape) for name, array in made.items()}
        inputs = [_value(f"{name}_in", array) for name, array in made.items()]
        nodes = [helper.make_node("Expand", [f"{name}_in", f"{name}_shape"], [name]) for name in made]
        results = [f"y{place}" for place in range(self.outputs)]
        nodes.append(helper.make_node(self.op_type, names, results, name="it", domain=self.domain, **self.attributes))
        watched = list(results)
        if read_on:
            nodes += [helper.make_node("Expand", [name, f"{name}_shape"], [f"{name}_on"]) for name in made]
            watched += [f"{name}_on" for name in made]
        nodes += [helper.make_node("Shape", [name], [f"{name}_end"]) for name in watched]
        ends = [helper.make_tensor_value_info(f"{name}_end", onnx.TensorProto.INT64, None) for name in watched]
        initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        graph = helper.make_graph(nodes, "one", inputs, ends, initializers)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _value(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


IMAGE, KERNEL = np.ones((1, 4, 6, 6), np.float32), np.ones((4, 4, 1, 1), np.float32)
ONE = {1: np.array([0])}
CASES = [
    Case("Reshape", constants={1: np.array([8, 4])}),
    Case("Flatten"),
    Case("Identity"),
    Case("Identity", (np.ones((4, 8), bool),)),
    Case("Squeeze", (X[None],), constants=ONE),
    Case("Unsqueeze", constants=ONE),
    *(Case(op) for op in ("Relu", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Elu", "Selu", "Celu", "LeakyRelu")),
    *(Case(op) for op in ("HardSigmoid", "Softplus", "Softsign", "ThresholdedRelu", "Shrink", "Clip", "Trilu")),
    Case("Relu", (np.ones((4, 8)),)),
    Case("Cast", attributes={"to": onnx.TensorProto.INT32}),
    Case("Cast", attributes={"to": onnx.TensorProto.DOUBLE}),
    Case("ScatterElements", (X, np.zeros((1, 8), np.int64), X[:1])),
    Case("FusedConv", (IMAGE, KERNEL, X[0, :4], IMAGE), domain=MICROSOFT),
    # What does not share, though it well could.
    *(Case(op) for op in ("Abs", "Ceil", "Dropout", "Erf", "Exp", "Gelu", "Log", "Neg", "Reciprocal", "Sqrt")),
    *(Case(op, (X, X)) for op in ("Add", "Div", "Max", "Mul", "Pow", "PRelu", "Sub", "Sum")),
    *(Case(op, domain=MICROSOFT) for op in ("FastGelu", "Gelu", "QuickGelu")),
    Case("Sum"),
    Case("Concat", attributes={"axis": 0}),
    Case("Split", attributes={"num_outputs": 1}),
    Case("Transpose", attributes={"perm": [0, 1]}),
    Case("ScatterND", (X, np.zeros((1, 1), np.int64), X[:1])),
    Case("LayerNormalization", (X, X[0]), outputs=3),
    Case("FusedConv", (IMAGE, KERNEL), domain=MICROSOFT),
    Case("Conv", (IMAGE, KERNEL)),
    Case("Where", (X > 0, X, X)),
]


def measured(case: Case, read_on: bool, folder: Path) -> int:
    """Bytes of the op's results that did not take memory of their own."""
    kernels, _ = trace(case.model(read_on), folder)
    (it,) = [kernel for kernel in kernels if kernel.node == "it"]
    return it.writes - it.grew


def expected(case: Case, read_on: bool) -> int:
    graph = graph_of(case.model(read_on), Path("one.onnx"))
    (op,) = [op for op in graph.ops if op.name == "it"]
    shared = {out for out, _ in semantics.views(op)}
    if not read_on:
        for out, into in semantics.overwrites(op, "cpu"):
            result, read = graph.values[op.outputs[out]], graph.values[op.inputs[into]]
            if (result.shape, result.bytes) == (read.shape, read.bytes):
                shared.add(out)
    return sum(graph.values[op.outputs[out]].bytes for out in shared)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.domain}{case.op_type}")
def test_sharing_is_as_measured(case: Case, tmp_path: Path) -> None:
    for read_on in (False, True):
        assert measured(case, read_on, tmp_path) == expected(case, read_on)


def test_every_line_of_the_tables_is_measured() -> None:
    too_new = {"BitCast", "TensorScatter"}  # ops of opsets whose other ops the runtime does not all have
    tables = set(semantics.VIEWS) | set(semantics.OVERWRITES["cpu"])
    assert tables - too_new == {c.op_type for c in CASES} & tables


def _drawn_twice(seed: dict[str, int]) -> onnx.ModelProto:
    nodes = [helper.make_node("Dropout", ["x", "ratio", "on"], [f"y{copy}"], **seed) for copy in "ab"]
    weights = [
        numpy_helper.from_array(np.array(0.5, np.float32), "ratio"),
        numpy_helper.from_array(np.array(True), "on"),
    ]
    graph = helper.make_graph(nodes, "twice", [_value("x", X)], [_value("ya", X), _value("yb", X)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_a_seed_makes_copies_draw_alike_in_every_run() -> None:
    seeded, free = session(_drawn_twice({"seed": 7})), session(_drawn_twice({}))
    alike = [[np.array_equal(*running.run(None, {"x": X})) for _ in range(4)] for running in (seeded, free)]
    assert alike[0] == [True] * 4
    assert not all(alike[1])


def test_optional_outputs_never_all() -> None:
    def op(op_type: str, outputs: list[str], **attributes: Any) -> Any:
        node = helper.make_node(op_type, ["x", "w", "r", "m", "v"], outputs, **attributes)
        return graph_stub(node)

    assert semantics.optional_outputs(op("MaxPool", ["y", "i"]), 18) == {1}
    assert semantics.optional_outputs(op("LayerNormalization", ["y", "", "s"]), 18) == {2}
    assert semantics.optional_outputs(op("LSTM", ["y", "h", "c"]), 18) == set()  # it makes them all the same
    assert semantics.optional_outputs(op("BatchNormalization", ["y", "m", "v"], training_mode=1), 18) == set()
    assert semantics.optional_outputs(op("Split", ["y", "z"]), 18) == set()


def test_attention_over_earlier_keys_hands_on_all_of_them() -> None:
    """The kernel refuses to run without either."""
    for inputs, free in ((["q", "q", "q"], {1, 2, 3}), (["q", "q", "q", "", "k0", "v0"], {3})):
        node = helper.make_node("Attention", inputs, ["y", "k", "v", "qk"])
        assert semantics.optional_outputs(graph_stub(node), 23) == free


def graph_stub(node: onnx.NodeProto) -> Any:
    from remat_cli.model.graph import Op

    return Op(node.op_type, node.op_type, node.domain, tuple(node.input), tuple(node.output), node)


def test_unknown_domains_run_once() -> None:
    assert semantics.runs_once(graph_stub(helper.make_node("Mine", ["x"], ["y"], domain="elsewhere")))
    assert not semantics.runs_once(graph_stub(helper.make_node("FusedMatMul", ["x"], ["y"], domain=MICROSOFT)))
    inner = helper.make_graph([helper.make_node("RandomNormal", [], ["r"], shape=[1])], "t", [], [])
    assert semantics.runs_once(graph_stub(helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)))
