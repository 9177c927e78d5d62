"""Replaces loops by their rounds, where the number of rounds is known before the graph runs.

Exporters write such loops for lengths that a module knows: an EmbeddingBag, a scripted loop over a sequence.

Invariant: a round reads what the one before made, the loop's own names included; nothing of the loop itself is on the
tape.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.tracing import TracerLike
from remat_cli.onnx_graph.attributes import attribute

UNROLLED_NODES = 20_000  # the most nodes that a loop may become
Value: TypeAlias = "Tensor | list[str]"  # a tensor, or a sequence's parts


def write_out(tracer: TracerLike, node: onnx.NodeProto, opset: int) -> bool:
    """Write the loop's rounds; the result is False where their number is not known."""
    rounds, goes_on = _number(tracer, node.input[0]), _number(tracer, node.input[1])
    if (node.input[0] and rounds is None) or (node.input[1] and goes_on is None) or not any(node.input[:2]):
        return False
    body = attribute(node, "body")
    carried = [_get(tracer, name) for name in node.input[2:]]
    scanned: list[list[str]] = [[] for _ in node.output[len(carried) :]]
    most = UNROLLED_NODES // max(1, len(body.node)) if rounds is None else rounds
    if most * len(body.node) > UNROLLED_NODES or not all(_is_there(tracer, name) for name in node.input[2:]):
        return False
    done, goes_on = 0, 1 if goes_on is None else goes_on
    while goes_on and done < most:
        _begin(tracer, body, done, carried)
        for part in body.node:
            tracer.trace(part, opset)
        if tracer.lost.intersection(value.name for value in body.output):
            return False
        carried = [_get(tracer, value.name) for value in body.output[1 : 1 + len(carried)]]
        for parts, value in zip(scanned, body.output[1 + len(carried) :]):
            parts.append(tracer.alias(value.name))
        done += 1
        known = _number(tracer, body.output[0].name)
        if known is None or (known and rounds is None and done == most):
            return False
        goes_on = known
    for name, value in zip(node.output, carried):
        _set(tracer, name, value)
    for name, parts in zip(node.output[len(carried) :], scanned):
        if name:
            _stack(tracer, node, name, parts)
    return True


def _begin(tracer: TracerLike, body: onnx.GraphProto, done: int, carried: list[Value]) -> None:
    """Bind the inputs of a round: its number, a true condition, and the values of the round before."""
    tape = tracer.tape
    tracer.known[body.input[0].name] = tape.integers(done)
    tracer.known[body.input[1].name] = tape.constant(True, TensorProto.BOOL)
    for formal, value in zip(body.input[2:], carried):
        _set(tracer, formal.name, value)
    for stored in body.initializer:
        tracer.known[stored.name] = tape.store(tape.fresh(stored.name), numpy_helper.to_array(stored))


def _stack(tracer: TracerLike, node: onnx.NodeProto, name: str, parts: list[str]) -> None:
    """Stack the results of all rounds along a new first axis."""
    axes = f"{name}/axis"
    tracer.known[axes] = tracer.tape.integers([0])
    made = []
    for part in parts:
        made.append(f"{part}/row")
        row = helper.make_node("Unsqueeze", [part, axes], made[-1:], name=node.name)
        tracer.trace(row, tracer.tape.opset)
    tracer.trace(helper.make_node("Concat", made, [name], name=node.name, axis=0), tracer.tape.opset)


def _number(tracer: TracerLike, name: str) -> int | None:
    """The only number of a tensor, if it is known."""
    tensor = tracer.known.get(name)
    array = tracer.tape.constants.get(tensor.name) if tensor else None
    return int(np.reshape(array, -1)[0]) if array is not None and array.size == 1 else None


def _is_there(tracer: TracerLike, name: str) -> bool:
    return name in tracer.known or name in tracer.sequences.parts


def _get(tracer: TracerLike, name: str) -> Value:
    return tracer.sequences.parts[name] if name in tracer.sequences.parts else tracer.known[name]


def _set(tracer: TracerLike, name: str, value: Value) -> None:
    tracer.known.pop(name, None)
    tracer.sequences.parts.pop(name, None)
    if isinstance(value, Tensor):
        tracer.known[name] = value
    else:
        tracer.sequences.parts[name] = value
