"""Converts a graph to what `profiles` times: each op's signature, and operands for the whole graph.

Invariant: an op's signature depends on nothing but the op and its operands, whether they are read directly or through
views. So the ops of a rewritten graph have the signatures of the ops they were copied from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from profiles.feeds import SHARES, draw, index_bound, needs_positive
from profiles.signature import Operand, OpSignature, attributes_of
from profiles.survey import Ops
from remat_cli.model import semantics
from remat_cli.model.graph import Graph, Op, Value
from remat_cli.model.step_parts import parts_of
from remat_cli.onnx_graph.stored import array_of, constant_tensor

STEERING_ELEMENTS = 64  # in elements: a constant up to this size that steers the kernel is part of the signature
MOMENTS = ("Add", "Div", "Mul", "Sub")  # ops of an optimizer on its state
MOST_DIMENSIONS = 8  # a tensor has no more dimensions
SHAPES = {("Reshape", 1), ("Expand", 1), ("ConstantOfShape", 0)}  # operands that the result's shape implies


def ops_of(graph: Graph, only: Collection[str] | None = None) -> Ops:
    """The graph's ops, or `only` those of these names, in the form that `profiles` takes."""
    constants = dict(small_constants(graph.model))
    held = set(graph.weights)
    for op in graph.ops:
        _look_through(graph, op, constants, held)
    outputs = set(graph.outputs)
    wanted = [op for op in graph.ops if only is None or op.name in only]
    return Ops(
        {op.name: _signature(graph, op, constants, held) for op in wanted},
        frozenset(op.name for op in wanted if _is_free(op, outputs)),
        frozenset(op.name for op in wanted if is_light(graph, op) and not _is_free(op, outputs)),
    )


def _look_through(graph: Graph, op: Op, constants: dict[str, np.ndarray], held: set[str]) -> None:
    """Treat a view of a weight, such as a guard of a rewritten graph, as constant as the weight."""
    for out, into in semantics.views(op):
        view, base = op.outputs[out], op.inputs[into]
        if base in held and view in graph.values:
            held.add(view)
            if base in constants:
                constants[view] = constants[base].reshape(graph.values[view].shape)


def _is_free(op: Op, outputs: set[str]) -> bool:
    """Whether the op costs nothing: it is a view. A view that is an output of the graph is copied, and so is not
    free."""
    return any(True for _ in semantics.views(op)) and not outputs.intersection(op.outputs)


def is_light(graph: Graph, op: Op) -> bool:
    """Whether the op is too small to measure: it computes a few shapes, as a rewritten graph does, or makes nothing."""
    results = [graph.values[name] for name in op.writes]
    if not any(value.bytes for value in results):
        return True
    return all(_is_shape(value) for value in results) and all(_is_shape(graph.values[name]) for name in op.reads)


def _is_shape(value: Value) -> bool:
    return not value.bytes or (value.dtype == onnx.TensorProto.INT64 and value.bytes <= 8 * MOST_DIMENSIONS)


def _signature(graph: Graph, op: Op, constants: Mapping[str, np.ndarray], held: set[str]) -> OpSignature:
    return OpSignature(
        op_type=op.op_type,
        domain=op.domain,
        opset=graph.opset(op.domain),
        attributes=attributes_of(op.node),
        inputs=tuple(_operand(graph, op, place, name, constants, held) for place, name in enumerate(op.inputs)),
        outputs=tuple(_plain(graph, name) if name else None for name in op.outputs),
    )


def _plain(graph: Graph, name: str) -> Operand:
    value = graph.values[name]
    return Operand(value.dtype, tuple(value.shape))


def _operand(
    graph: Graph, op: Op, place: int, name: str, constants: Mapping[str, np.ndarray], held: set[str]
) -> Operand | None:
    if not name:
        return None
    value = graph.values[name]
    array = constants.get(name)
    if array is None and (op.op_type, place) in SHAPES and not op.domain:
        array = np.array(graph.values[op.outputs[0]].shape, np.int64)
    if array is None or not _steers(array):
        return Operand(value.dtype, tuple(value.shape), name in held)
    return Operand(value.dtype, tuple(value.shape), True, np.ascontiguousarray(array).tobytes())


def _steers(array: np.ndarray) -> bool:
    """Whether the constant steers a kernel. Integers are axes, shapes, pads or indices; one float can be an exponent or
    a limit."""
    return array.size <= STEERING_ELEMENTS if array.dtype.kind in "iub" else array.size == 1 and array.dtype.kind == "f"


def small_constants(model: onnx.ModelProto) -> Iterator[tuple[str, np.ndarray]]:
    """The small constants that the model file itself holds."""
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and np.prod(tensor.dims) <= STEERING_ELEMENTS:
            yield tensor.name, array_of(tensor)
    for node in model.graph.node:
        held = constant_tensor(node) if node.op_type == "Constant" else None
        if held is not None and np.prod(held.dims) <= STEERING_ELEMENTS:
            yield node.output[0], array_of(held)


def feeds_of(graph: Graph, ops: Ops, seed: int = 0) -> dict[str, Any]:
    """Random inputs for the whole graph, valid for the ops that read them.

    State of which roots are taken in the end, as of second moments, is positive: else all parameters become NaN.
    """
    rng = np.random.default_rng(seed)
    readers: dict[str, list[tuple[Op, int]]] = {}
    for op in graph.ops:
        for place, name in enumerate(op.inputs):
            readers.setdefault(name, []).append((op, place))
    parts = parts_of(graph.model)
    state = set(parts.state if parts else graph.in_place.values())
    feeds = {}
    for name in graph.inputs:
        uses = list(_uses(name, readers))
        bounds = [index_bound(ops.signatures[op.name], place) for op, place in uses]
        roots = _uses(name, readers, MOMENTS) if name in state else uses
        positive = any(needs_positive(ops.signatures[op.name], place) for op, place in roots)
        share = any((op.op_type, place) in SHARES for op, place in uses)
        feeds[name] = draw(_plain(graph, name), rng, min((b for b in bounds if b), default=2), positive, share)
    return feeds


def _uses(
    name: str, readers: Mapping[str, list[tuple[Op, int]]], through: Sequence[str] = ()
) -> Iterator[tuple[Op, int]]:
    """The readers of a value, directly or through views and conversions, or as the first operand of more ops."""
    for op, place in readers.get(name, ()):
        yield op, place
        if place == 0 and (op.op_type in semantics.VIEWS or op.op_type in ("Cast", *through)):
            yield from _uses(op.outputs[0], readers, through)
