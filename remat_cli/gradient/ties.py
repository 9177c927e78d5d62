"""Finds the initializers that are one parameter: by the user's word, or by the file where it has no better record.

An exporter that merges initializers of equal value writes an Identity for each removed name. Such a name is either
another parameter that began with the same values, or a second name of one parameter. An exporter that does not merge
writes a tied parameter twice.

Invariant: afterwards every parameter is one initializer, and notes say which tensors were taken to be one parameter or
two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import numpy as np
import onnx

from remat_cli.errors import BadInput
from remat_cli.gradient.tape import FLOATS
from remat_cli.onnx_graph.stored import array_of

PLACES = ("/", "onnx::")  # prefixes of the names of values that are no parameters


def tie(graph: onnx.GraphProto, pairs: Iterable[tuple[str, str]]) -> None:
    """Replace the second of each pair by the first."""
    stored = {initializer.name: initializer for initializer in graph.initializer}
    for kept, gone in pairs:
        for name in (kept, gone):
            if name not in stored:
                raise BadInput(f"--tie {kept}={gone}: the model has no initializer '{name}'")
        if kept == gone or list(stored[kept].dims) != list(stored[gone].dims):
            shapes = " and ".join(str(list(stored[name].dims)) for name in (kept, gone))
            raise BadInput(f"--tie {kept}={gone}: they are no two tensors of one shape, but {shapes}")
        graph.initializer.remove(stored.pop(gone))
        _read_instead(graph.node, gone, kept)


def tie_alike(graph: onnx.GraphProto) -> list[str]:
    """Tie or part initializers by what reads them, in a file of a tracing exporter; the result is notes."""
    return [*_part(graph), *_tie_embeddings(graph)]


def _part(graph: onnx.GraphProto) -> Iterator[str]:
    """Make each name that an Identity stands for a parameter of its own, unless it is an embedding that a product reads
    too."""
    stored = {initializer.name: initializer for initializer in graph.initializer}
    parted: list[str] = []
    for node in list(graph.node):
        source = stored.get(node.input[0]) if node.op_type == "Identity" else None
        if source is None or node.output[0].startswith(PLACES) or source.data_type not in FLOATS:
            continue
        graph.node.remove(node)
        name = node.output[0]
        if _is_embedding(graph, source.name, name) and not _is_fill(source):
            _read_instead(graph.node, name, source.name)
            yield f"'{name}' is '{source.name}', a tied embedding"
            continue
        own = graph.initializer.add()
        own.CopyFrom(source)
        own.name = name
        parted.append(name)
    if parted:
        some = ", ".join(parted[:3]) + (", ..." if len(parted) > 3 else "")
        yield f"the exporter had merged parameters of equal value; they are trained apart: {some}"


def _tie_embeddings(graph: onnx.GraphProto) -> Iterator[str]:
    """Tie embeddings that the file stores twice."""
    shapes = {tuple(i.dims) for i in graph.initializer if _is_embedding(graph, i.name)}
    for first, *others in alike(graph, {i.name for i in graph.initializer if tuple(i.dims) in shapes}):
        for other in others:
            if _is_embedding(graph, first, other):
                tie(graph, [(first, other)])
                yield f"'{other}' is '{first}', a tied embedding"


def alike(graph: onnx.GraphProto, names: set[str]) -> list[list[str]]:
    """Groups of the named initializers that hold the same numbers and are no plain fills."""
    shaped: dict[tuple[object, ...], list[onnx.TensorProto]] = defaultdict(list)
    for tensor in graph.initializer:
        if tensor.name in names and tensor.data_type in FLOATS:
            shaped[tensor.data_type, *tensor.dims].append(tensor)
    groups: dict[bytes, list[str]] = defaultdict(list)
    for tensors in shaped.values():
        for tensor in tensors if len(tensors) > 1 else ():
            if not _is_fill(tensor):
                groups[sha256(array_of(tensor).reshape(-1).view(np.uint8).data).digest()].append(tensor.name)
    return [found for found in groups.values() if len(found) > 1]


def _is_fill(initializer: onnx.TensorProto) -> bool:
    """Whether all elements are one number, as new weights of normalizations and new biases are."""
    array = array_of(initializer)
    numbers = array.reshape(-1)
    return all(bool(np.all(some == numbers[:1])) for some in (numbers[:4096], numbers[4096:]))


def _is_embedding(graph: onnx.GraphProto, *names: str) -> bool:
    return any(node.op_type == "Gather" and node.input[0] in names for node in graph.node)


def _read_instead(nodes: Sequence[onnx.NodeProto], gone: str, kept: str) -> None:
    for node in nodes:
        node.input[:] = [kept if name == gone else name for name in node.input]
