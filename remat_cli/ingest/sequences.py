"""Sequences and optional values written out: what is put together and taken apart in the main graph are plain tensors.

Invariant: all of them go or none; the results are the same bits. What a loop grows, or data chooses from, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.ingest.constants import SMALL, constant_tensor
from remat_cli.ingest.names import captures


class _Stays(Exception):
    """The length of a sequence, or what is asked of it, is not known."""


@dataclass(slots=True)
class _Written:
    """`held`: the tensors of each sequence or optional value so far; `sizes`: known shapes."""

    sizes: dict[str, tuple[int, ...]]
    constants: dict[str, np.ndarray]
    held: dict[str, list[str]] = field(default_factory=dict)
    stored: list[onnx.TensorProto] = field(default_factory=list)

    def parts(self, name: str) -> list[str]:
        if name not in self.held:
            raise _Stays
        return self.held[name]

    def place(self, node: onnx.NodeProto, at: int, default: int) -> int:
        if len(node.input) <= at or not node.input[at]:
            return default
        if node.input[at] not in self.constants:
            raise _Stays
        return int(self.constants[node.input[at]].reshape(-1)[0])

    def store(self, name: str, content: np.ndarray) -> str:
        self.stored.append(numpy_helper.from_array(content, name))
        return name


def write_out(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without sequences; the same object where there are none, or some have to stay."""
    if not any(node.op_type in RULES for node in model.graph.node):
        return model
    written = _Written(_known(model), _constants(model))
    nodes: list[onnx.NodeProto] = []
    try:
        for node in model.graph.node:
            if node.op_type == "SplitToSequence" and node.input[0] not in written.sizes:
                written.sizes |= _known(_with(nodes, written, model))  # onnx knows it now that sequences are gone
            nodes += _replaced(node, written)
    except (_Stays, IndexError, ValueError):
        return model
    if not written.held or any(output.name in written.held for output in model.graph.output):
        return model
    return _with(nodes, written, model)


def _with(nodes: Sequence[onnx.NodeProto], written: _Written, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model of these nodes instead of its own."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    del found.graph.node[:]
    found.graph.node.extend(nodes)
    found.graph.initializer.extend(written.stored)
    kept = [value for value in found.graph.value_info if value.name not in written.held]
    del found.graph.value_info[:]
    found.graph.value_info.extend(kept)
    return found


def _known(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*graph.value_info, *graph.input, *graph.output)
    return {value.name: sizes for value in values if (sizes := _sizes(value)) is not None}


def _replaced(node: onnx.NodeProto, written: _Written) -> list[onnx.NodeProto]:
    if node.op_type in RULES and node.domain in ("", "ai.onnx"):
        return list(RULES[node.op_type](node, written))
    if node.op_type == "Identity" and node.input[0] in written.held:
        written.held[node.output[0]] = written.held[node.input[0]]
        return []
    if any(name in written.held for name in (*node.input, *captures(node))):
        raise _Stays
    return [node]


def _sizes(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
        return None
    return tuple(dim.dim_value for dim in tensor.shape.dim)


def _constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    tensors = [(tensor.name, tensor) for tensor in model.graph.initializer]
    made = ((node.output[0], constant_tensor(node)) for node in model.graph.node if node.op_type == "Constant")
    tensors += [(name, tensor) for name, tensor in made if tensor is not None]
    return {
        name: numpy_helper.to_array(tensor)
        for name, tensor in tensors
        if tensor.data_type == onnx.TensorProto.INT64
        and np.prod(tensor.dims) <= SMALL
        and tensor.data_location != onnx.TensorProto.EXTERNAL
    }


def _holds(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    """SequenceConstruct, SequenceEmpty, Optional: nothing runs."""
    if any(name in written.held for name in node.input):
        raise _Stays  # an optional sequence
    written.held[node.output[0]] = [name for name in node.input if name]
    yield from ()


def _insert(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    parts = list(written.parts(node.input[0]))
    parts.insert(written.place(node, 2, len(parts)), node.input[1])
    written.held[node.output[0]] = parts
    yield from ()


def _erase(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    parts = list(written.parts(node.input[0]))
    del parts[written.place(node, 1, -1)]
    written.held[node.output[0]] = parts
    yield from ()


def _at(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    part = written.parts(node.input[0])[written.place(node, 1, 0)]
    yield helper.make_node("Identity", [part], node.output, node.name)


def _element(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    """Of a plain tensor it is the tensor."""
    (part,) = written.held.get(node.input[0], [node.input[0]])
    yield helper.make_node("Identity", [part], node.output, node.name)


def _has(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    if node.input and node.input[0] in written.held:
        has = numpy_helper.from_array(np.array(bool(written.held[node.input[0]])))
        yield helper.make_node("Constant", [], node.output, node.name, value=has)
    else:
        yield node


def _length(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    count = np.array(len(written.parts(node.input[0])), np.int64)
    yield helper.make_node("Constant", [], node.output, node.name, value=numpy_helper.from_array(count))


def _concat(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    how = {attribute.name: attribute.i for attribute in node.attribute}
    parts = list(written.parts(node.input[0]))
    if not parts:
        raise _Stays
    if how.get("new_axis"):
        axes = written.store(f"{node.output[0]}__axis", np.array([how["axis"]], np.int64))
        for number, part in enumerate(parts):
            parts[number] = f"{node.output[0]}__part{number}"
            yield helper.make_node("Unsqueeze", [part, axes], [parts[number]])
    yield helper.make_node("Concat", parts, node.output, node.name, axis=how["axis"])


def _split(node: onnx.NodeProto, written: _Written) -> Iterator[onnx.NodeProto]:
    how = {attribute.name: attribute.i for attribute in node.attribute}
    name, axis = node.output[0], how.get("axis", 0)
    if node.input[0] not in written.sizes:
        raise _Stays
    whole = written.sizes[node.input[0]][axis]
    given = len(node.input) > 1 and bool(node.input[1])
    lengths = _lengths(written.constants.get(node.input[1]) if given else np.array(1, np.int64), whole)
    parts = [f"{name}__part{number}" for number in range(len(lengths))]
    written.held[name] = parts
    flat = not given and not how.get("keepdims", 1)
    made = [f"{part}__thin" for part in parts] if flat else parts
    sizes = written.store(f"{name}__split", np.array(lengths, np.int64))
    yield helper.make_node("Split", [node.input[0], sizes], made, node.name, axis=axis)
    if flat:
        axes = written.store(f"{name}__axis", np.array([axis], np.int64))
        yield from (helper.make_node("Squeeze", [thin, axes], [part]) for thin, part in zip(made, parts, strict=True))


def _lengths(split: np.ndarray | None, whole: int) -> list[int]:
    if split is None or (not split.shape and split <= 0) or not whole:
        raise _Stays
    if split.shape:
        return [int(length) for length in split]
    return [min(int(split), whole - begin) for begin in range(0, whole, int(split))]


RULES: dict[str, Callable[[onnx.NodeProto, _Written], Iterator[onnx.NodeProto]]] = {
    "ConcatFromSequence": _concat,
    "Optional": _holds,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has,
    "SequenceAt": _at,
    "SequenceConstruct": _holds,
    "SequenceEmpty": _holds,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
