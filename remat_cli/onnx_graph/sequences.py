"""Sequences and optional values written out: what is put together and taken apart again are plain tensors.

Invariant: a sequence is known by the names of its tensors; no node that is written makes or reads one, and the results
are the same bits. What a loop grows, or data chooses from, cannot be written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.onnx_graph.attributes import attributes


class CannotWriteOut(Exception):
    """The length of a sequence, or what is asked of it, is not known; the text says what."""


class KnownValues(Protocol):
    """What a reader of the graph knows of its tensors, node by node."""

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """The tensor's sizes, if all are known."""

    def constant_of(self, name: str) -> np.ndarray | None:
        """The tensor's content, if it is known."""

    def store(self, name: str, content: np.ndarray) -> str:
        """A constant under this name, or one like it that is free."""

    def alias(self, name: str) -> str:
        """A name that stands for the tensor for good; in a loop's next round its own stands for something else."""

    def new_name(self, stem: str) -> str:
        """A name for a tensor that a written node makes."""


class SequenceWriter:
    """Nodes on tensors in place of nodes on sequences. `parts`: the tensors of each sequence or optional value."""

    def __init__(self, known: KnownValues) -> None:
        self.known = known
        self.parts: dict[str, list[str]] = {}

    def takes(self, node: onnx.NodeProto) -> bool:
        """Whether the node is one to write out."""
        if node.domain not in ("", "ai.onnx"):
            return False
        return node.op_type in WRITERS or (node.op_type == "Identity" and node.input[0] in self.parts)

    def write(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        """The nodes that stand in its place."""
        if node.op_type == "Identity":
            self.parts[node.output[0]] = self.parts[node.input[0]]
            return iter(())
        return WRITERS[node.op_type](self, node)

    def parts_of(self, name: str) -> list[str]:
        if name not in self.parts:
            raise CannotWriteOut("it reads a sequence that depends on data")
        return self.parts[name]

    def position(self, node: onnx.NodeProto, at: int, default: int, least: int, most: int) -> int:
        """The place in a sequence that an input says, between these two."""
        if len(node.input) <= at or not node.input[at]:
            found = default
        else:
            constant = self.known.constant_of(node.input[at])
            found = most + 1 if constant is None or constant.size != 1 else int(constant.reshape(-1)[0])
        if not least <= found <= most:
            raise CannotWriteOut("its position must be a constant within the sequence")
        return found


def _put_together(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """SequenceConstruct, SequenceEmpty and Optional make nothing that runs."""
    if any(name in writer.parts for name in node.input):
        raise CannotWriteOut("it holds a sequence within another value")
    writer.parts[node.output[0]] = [writer.known.alias(name) for name in node.input if name]
    yield from ()


def _insert(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    parts = list(writer.parts_of(node.input[0]))
    place = writer.position(node, 2, len(parts), -len(parts), len(parts))
    parts.insert(place, writer.known.alias(node.input[1]))
    writer.parts[node.output[0]] = parts
    yield from ()


def _erase(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    parts = list(writer.parts_of(node.input[0]))
    del parts[writer.position(node, 1, -1, -len(parts), len(parts) - 1)]
    writer.parts[node.output[0]] = parts
    yield from ()


def _take(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    parts = writer.parts_of(node.input[0])
    part = parts[writer.position(node, 1, 0, -len(parts), len(parts) - 1)]
    yield helper.make_node("Identity", [part], node.output, node.name)


def _take_optional(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The element of a plain tensor is that tensor."""
    parts = writer.parts.get(node.input[0], [node.input[0]])
    if len(parts) != 1:
        raise CannotWriteOut("it takes the element of a value that has none")
    yield helper.make_node("Identity", parts, node.output, node.name)


def _has_element(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    if node.input and node.input[0] in writer.parts:
        has = numpy_helper.from_array(np.array(bool(writer.parts[node.input[0]])))
        yield helper.make_node("Constant", [], node.output, node.name, value=has)
    elif node.input and node.input[0] and writer.known.shape_of(node.input[0]) is not None:
        yield helper.make_node("Constant", [], node.output, node.name, value=numpy_helper.from_array(np.array(True)))
    else:
        yield node


def _count(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    count = np.array(len(writer.parts_of(node.input[0])), np.int64)
    yield helper.make_node("Constant", [], node.output, node.name, value=numpy_helper.from_array(count))


def _concat(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    said = attributes(node)
    name, parts = node.output[0], list(writer.parts_of(node.input[0]))
    if not parts:
        raise CannotWriteOut("its sequence is empty")
    if said.get("new_axis"):
        axes = writer.known.store(f"{name}__axis", np.array([said["axis"]], np.int64))
        rows = [writer.known.new_name(f"{name}__part{number}") for number in range(len(parts))]
        for part, row in zip(parts, rows, strict=True):
            yield helper.make_node("Unsqueeze", [part, axes], [row])
        parts = rows
    yield helper.make_node("Concat", parts, node.output, node.name, axis=said["axis"])


def _split(writer: SequenceWriter, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    said = attributes(node)
    name, axis = node.output[0], said.get("axis", 0)
    shape = writer.known.shape_of(node.input[0])
    if shape is None or not -len(shape) <= axis < len(shape):
        raise CannotWriteOut("the size of what it splits is not known")
    given = len(node.input) > 1 and bool(node.input[1])
    lengths = _lengths(writer.known.constant_of(node.input[1]) if given else np.array(1, np.int64), shape[axis])
    parts = [writer.known.new_name(f"{name}__part{number}") for number in range(len(lengths))]
    flat = not given and not said.get("keepdims", 1)
    thick = [writer.known.new_name(f"{part}__thin") for part in parts] if flat else parts
    sizes = writer.known.store(f"{name}__split", np.array(lengths, np.int64))
    yield helper.make_node("Split", [node.input[0], sizes], thick, node.name, axis=axis)
    if flat:
        axes = writer.known.store(f"{name}__axis", np.array([axis], np.int64))
        yield from (helper.make_node("Squeeze", [one, axes], [part]) for one, part in zip(thick, parts, strict=True))
    writer.parts[name] = parts


def _lengths(split: np.ndarray | None, whole: int) -> list[int]:
    """What each part has of the axis: as listed, or so many as one number says, the last part what is left."""
    if split is None or (not split.shape and split <= 0) or not whole:
        raise CannotWriteOut("where it splits must be a constant")
    if split.shape:
        return [int(length) for length in split]
    return [min(int(split), whole - begin) for begin in range(0, whole, int(split))]


WRITERS: dict[str, Callable[[SequenceWriter, onnx.NodeProto], Iterator[onnx.NodeProto]]] = {
    "ConcatFromSequence": _concat,
    "Optional": _put_together,
    "OptionalGetElement": _take_optional,
    "OptionalHasElement": _has_element,
    "SequenceAt": _take,
    "SequenceConstruct": _put_together,
    "SequenceEmpty": _put_together,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _count,
    "SplitToSequence": _split,
}
