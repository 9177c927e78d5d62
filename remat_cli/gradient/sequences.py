"""Sequences of tensors written out: what an exporter splits into a sequence and takes apart again is a Split.

Invariant: a sequence is known by the names of its tensors; no node of the tape makes or reads one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx
from onnx import helper

from remat_cli.errors import BadInput

if TYPE_CHECKING:
    from remat_cli.gradient.trace import Tracer

KINDS = frozenset(
    ("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceLength")
) | {"SplitToSequence"}


def write_out(tracer: Tracer, node: onnx.NodeProto) -> None:
    """A node that makes or reads a sequence, by nodes on tensors."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    name, sequences = node.output[0], tracer.sequences
    if node.op_type == "SplitToSequence":
        sequences[name] = _split(tracer, node, attributes)
    elif node.op_type == "SequenceConstruct":
        sequences[name] = [tracer.alias(part) for part in node.input]
    elif node.op_type == "SequenceEmpty":
        sequences[name] = []
    elif node.op_type == "SequenceAt":
        part = _known(tracer, node)[_index(tracer, node, 1)]
        tracer.known[name] = tracer.known[part]
    elif node.op_type == "SequenceInsert":
        parts = list(_known(tracer, node))
        place = _index(tracer, node, 2) if len(node.input) > 2 else len(parts)
        sequences[name] = [*parts[:place], tracer.alias(node.input[1]), *parts[place:]]
    elif node.op_type == "SequenceLength":
        tracer.known[name] = tracer.tape.integers(len(_known(tracer, node)))
    else:
        _concat(tracer, node, _known(tracer, node), attributes["axis"], attributes.get("new_axis", 0))


def _split(tracer: Tracer, node: onnx.NodeProto, attributes: dict[str, int]) -> list[str]:
    x = tracer.known[node.input[0]]
    axis = attributes.get("axis", 0) % max(x.rank, 1)
    sizes = _sizes(tracer, node, x.shape[axis])
    named = [f"{node.output[0]}/{place}" for place in range(len(sizes))]
    given = f"{node.output[0]}/sizes"
    tracer.known[given] = tracer.tape.integers(sizes)
    _trace(tracer, node, "Split", [node.input[0], given], named, axis=axis)
    if (len(node.input) > 1 and node.input[1]) or attributes.get("keepdims", 1):
        return named
    axes = f"{node.output[0]}/axis"
    tracer.known[axes] = tracer.tape.integers([axis])
    for name in named:
        _trace(tracer, node, "Squeeze", [name, axes], [f"{name}/squeezed"])
    return [f"{name}/squeezed" for name in named]


def _sizes(tracer: Tracer, node: onnx.NodeProto, whole: int) -> list[int]:
    """What each part has of the axis: as listed, or so many as one number says, the last being what is left."""
    if len(node.input) < 2 or not node.input[1]:
        return [1] * whole
    array = tracer.tape.constants.get(tracer.known[node.input[1]].name)
    if array is None:
        raise BadInput(f"SplitToSequence node '{node.name}': where it splits must be a constant")
    if array.ndim:
        return [int(size) for size in array]
    size = max(int(array), 1)
    return [min(size, whole - start) for start in range(0, whole, size)]


def _concat(tracer: Tracer, node: onnx.NodeProto, parts: Sequence[str], axis: int, new_axis: int) -> None:
    name = node.output[0]
    if new_axis:
        axes = f"{name}/axis"
        tracer.known[axes] = tracer.tape.integers([axis])
        for place, part in enumerate(parts):
            _trace(tracer, node, "Unsqueeze", [part, axes], [f"{name}/{place}"])
        parts = [f"{name}/{place}" for place in range(len(parts))]
    _trace(tracer, node, "Concat", parts, [name], axis=axis)


def _trace(
    tracer: Tracer, node: onnx.NodeProto, kind: str, reads: Sequence[str], writes: Sequence[str], **attributes: int
) -> None:
    tracer.trace(helper.make_node(kind, reads, writes, name=node.name, **attributes), tracer.tape.opset)


def _known(tracer: Tracer, node: onnx.NodeProto) -> list[str]:
    if node.input[0] not in tracer.sequences:
        raise BadInput(f"{node.op_type} node '{node.name}' reads a sequence that depends on data: it has no gradient")
    return tracer.sequences[node.input[0]]


def _index(tracer: Tracer, node: onnx.NodeProto, place: int) -> int:
    array = tracer.tape.constants.get(tracer.known[node.input[place]].name)
    length = len(_known(tracer, node)) + (node.op_type == "SequenceInsert")
    if array is None or not -length <= int(array.reshape(())) < length:
        raise BadInput(f"{node.op_type} node '{node.name}': its position must be a constant within the sequence")
    return int(array.reshape(())) % length
