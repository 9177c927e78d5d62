"""Finds the ops of the backward pass.

Invariant: everything that the loss is computed from is forward, the rest backward. Where no loss is found, all ops are
forward. The flag is a hint for methods and tables; no schedule depends on it to be legal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from remat_cli.model.graph import Op, Value

FLOATS = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.DOUBLE,
}


def backward_ops(ops: Sequence[Op], outputs: Sequence[str], values: Mapping[str, Value]) -> set[str]:
    """The names of the ops that the loss does not depend on."""
    writer = {name: op for op in ops for name in op.writes}
    loss = find_loss(outputs, values, writer)
    if loss is None:
        return set()
    forward = ancestors(loss, writer)
    return {op.name for op in ops if op.name not in forward}


def find_loss(outputs: Sequence[str], values: Mapping[str, Value], writer: Mapping[str, Op]) -> str | None:
    """An output called loss, or else the first output that is a float of one element.

    PyTorch's joint graphs, onnxruntime-training's and our own put the loss first; a model without a scalar output
    has no loss to speak of.
    """
    candidates = [
        name
        for name in outputs
        if name in writer and values[name].dtype in FLOATS and all(size == 1 for size in values[name].shape)
    ]
    named = [name for name in candidates if name == "loss"] or [name for name in candidates if "loss" in name.lower()]
    return next(iter(named or candidates), None)


def ancestors(value: str, writer: Mapping[str, Op]) -> set[str]:
    """The names of the ops that `value` is computed from."""
    found: set[str] = set()
    stack = [value]
    while stack:
        op = writer.get(stack.pop())
        if op is not None and op.name not in found:
            found.add(op.name)
            stack.extend(op.reads)
    return found
