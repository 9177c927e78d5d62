"""One numeric row: an op on inputs and attributes, and the model that a test makes of it.

Invariant: float inputs are differentiated unless `fixed` names their places; integers and bools are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

random = np.random.default_rng(7)


@dataclass(frozen=True)
class Row:
    op: str
    inputs: Sequence[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    fixed: tuple[int, ...] = ()
    opset: int = 22
    rule: str = ""  # the rule it is a row of, where that is not the op's name
    forward: Callable[..., np.ndarray] | None = None  # instead of ONNX's reference, where that is float32 or wrong

    def __str__(self) -> str:
        shapes = " ".join("-" if x is None else "x".join(map(str, x.shape)) or "scalar" for x in self.inputs)
        given = ",".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{self.op}[{shapes}]{given}"


def f(*shape: int) -> np.ndarray:
    """Numbers around zero, none near it, none equal."""
    x = random.standard_normal(shape)
    return x + np.sign(x) * 0.05


def p(*shape: int) -> np.ndarray:
    """Positive numbers."""
    return random.uniform(0.4, 2.0, shape)


def u(*shape: int) -> np.ndarray:
    """Numbers within (-0.9, 0.9)."""
    return random.uniform(0.05, 0.9, shape) * random.choice([-1, 1], shape)


def i(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def one(value: float) -> np.ndarray:
    return np.array(value, np.float64)


def both(kind: str, **attributes: Any) -> list[Row]:
    """A pointwise op on two ranks."""
    return [Row(kind, [f(3, 4)], attributes), Row(kind, [f(2, 1, 5)], attributes)]


def reductions(kind: str, make: Any = f) -> list[Row]:
    return [
        Row(kind, [make(3, 4, 2), i(1)]),
        Row(kind, [make(3, 4, 2), i(-1, 0)], {"keepdims": 0}),
        Row(kind, [make(2, 3)], {"keepdims": 0}),
        Row(kind, [make(2, 3)], {"noop_with_empty_axes": 1} if kind in ("ReduceSum", "ReduceMean") else {}),
        Row(kind, [make(3, 4, 2)], {"axes": [0, 2]}, opset=17)
        if kind != "ReduceSum"
        else Row(kind, [make(1, 1), i(0)]),
    ]


def is_float(x: np.ndarray | None) -> bool:
    return x is not None and x.dtype.kind == "f"


def as_model(row: Row, kind: type) -> onnx.ModelProto:
    """The op, its outputs weighted and added up to a scalar."""
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    names = [f"in{k}" if x is not None else "" for k, x in enumerate(row.inputs)]
    inputs, stored = [], []
    for k, x in enumerate(row.inputs):
        if is_float(x) and k not in row.fixed:
            inputs.append(helper.make_tensor_value_info(names[k], dtype, x.shape))
        elif x is not None:
            keep = not is_float(x) or x.dtype == np.float32
            stored.append(numpy_helper.from_array(x if keep else x.astype(kind), names[k]))
    outputs = [f"out{k}" for k in range(row.outputs)]
    attributes = {**row.attributes, **({"to": dtype} if row.op == "Cast" else {})}
    nodes = [helper.make_node(row.op, names, outputs, name="op", **attributes)]
    nodes += _weighted_sum(outputs, dtype, _ignored(row))
    graph = helper.make_graph(nodes, "row", inputs, [helper.make_tensor_value_info("loss", dtype, [])], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", row.opset)], ir_version=10)


def _ignored(row: Row) -> Sequence[str]:
    """Outputs that are no function of the input to differentiate: indices and running statistics."""
    return {"TopK": ["out1"], "BatchNormalization": ["out1", "out2"]}.get(row.op, [])


def _weighted_sum(outputs: Sequence[str], dtype: int, ignored: Sequence[str]) -> list[onnx.NodeProto]:
    """sum(sin(y)) for each output: no two elements weigh the same."""
    used = [name for name in outputs if name not in ignored]
    nodes = [helper.make_node("Sin", [name], [f"{name}_sin"]) for name in used]
    nodes += [helper.make_node("ReduceSum", [f"{name}_sin"], [f"{name}_sum"], keepdims=0) for name in used]
    return [*nodes, helper.make_node("Sum", [f"{name}_sum" for name in used], ["loss"])]
