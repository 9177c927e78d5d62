"""Tells whether two optimized graphs compute the same results by the same kernels: each value gets a number.

Invariant: two values have one number only if the same kernels, with the same attributes, make them of the same inputs
and constants, so that their bits are the same. Names do not count, nor do views: a Reshape is its base with another
shape. A part of a value counts the same, whether a Slice or a Split takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from itertools import accumulate

import onnx

from remat_cli.onnx_graph.attributes import attribute
from remat_cli.onnx_graph.stored import array_of
from remat_cli.onnx_graph.walk import static_shape, subgraphs

Shapes = Mapping[str, tuple[int, ...]]

VIEWS = {"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
STANDARD = ("", "ai.onnx")
WHOLE = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
MOST_DIMENSIONS = 16  # a tensor has no more dimensions


@dataclass(slots=True)
class Numbered:
    """A graph with the number of each value. `shapes`: the known shapes, from the graph and from the caller."""

    graph: onnx.GraphProto
    shapes: dict[str, tuple[int, ...]]
    opsets: Mapping[str, int]
    numbers: dict[str, bytes] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)  # a view -> its base, which is no view
    # contents of the constants that say where a part begins and ends
    constants: dict[str, list[int]] = field(default_factory=dict)

    def walk(self) -> Numbered:
        self.shapes.update(_shapes_told(self.graph))
        for place, entry in enumerate(self.graph.input):
            self.numbers[entry.name] = _hash("input", place)
        for tensor in self.graph.initializer:
            self.numbers[tensor.name] = _content(tensor)
            if len(tensor.dims) == 1 and tensor.data_type in WHOLE and tensor.dims[0] <= MOST_DIMENSIONS:
                self.constants[tensor.name] = [int(one) for one in array_of(tensor)]
        for node in self.graph.node:
            if _is_view(node):
                self._view(node)
            elif node.op_type in ("Slice", "Split") and node.domain in STANDARD and (parts := self._parts(node)):
                self.numbers.update(zip(node.output, parts, strict=True))
            else:
                self._kernel(node)
        return self

    def _view(self, node: onnx.NodeProto) -> None:
        read, made = node.input[0], node.output[0]
        base = self.bases[made] = self.bases.get(read, read)
        shape = self.shapes.get(made)
        same = shape is not None and shape == self.shapes.get(base)
        self.numbers[made] = self._number(base) if same else _hash("view", self._number(base), shape)

    def _parts(self, node: onnx.NodeProto) -> list[bytes]:
        """Numbers of the parts that a Slice or a Split takes; empty where the parts are not known."""
        base, shape = self._number(node.input[0]), self.shapes.get(node.input[0])
        if shape is None or any(name and name not in self.constants for name in node.input[1:]):
            return []
        given = [self.constants.get(name) for name in node.input[1:]]
        if node.op_type == "Slice":
            return [_hash("part", base, _slice(shape, given))]
        axis = attribute(node, "axis", 0) % len(shape)
        sizes = given[0] if given else [(self.shapes.get(name) or (0,) * len(shape))[axis] for name in node.output]
        ends = list(accumulate(sizes or ()))
        if not ends or ends[-1] != shape[axis]:
            return []
        plain = [range(size) for size in shape]
        ranges = [range(end - size, end) for size, end in zip(sizes or (), ends, strict=True)]
        return [_hash("part", base, (*plain[:axis], part, *plain[axis + 1 :])) for part in ranges]

    def _kernel(self, node: onnx.NodeProto) -> None:
        reads = tuple(self._number(name) for name in node.input)
        kernel = _hash(node.domain.replace("ai.onnx", ""), node.op_type, *self._attributes(node), *reads)
        for place, name in enumerate(node.output):
            self.numbers[name] = _hash(kernel, place)

    def _attributes(self, node: onnx.NodeProto) -> Iterator[object]:
        domain = node.domain.replace("ai.onnx", "")
        defaults = _defaults(node.op_type, domain, self.opsets.get(domain, 1))
        for entry in sorted(node.attribute, key=lambda entry: entry.name):
            if entry.type == onnx.AttributeProto.GRAPH:
                inner = Numbered(
                    entry.g,
                    dict(self.shapes),
                    self.opsets,
                    dict(self.numbers),
                    dict(self.bases),
                    dict(self.constants),
                ).walk()
                yield (entry.name, [inner._number(output.name) for output in entry.g.output])
            else:
                plain = onnx.AttributeProto()
                plain.CopyFrom(entry)
                plain.ClearField("doc_string")
                spelled = plain.SerializeToString(deterministic=True)
                if defaults.get(entry.name) != spelled:
                    yield spelled

    def _number(self, name: str) -> bytes:
        return self.numbers[name] if name in self.numbers else _hash("unknown", name)

    def results(self) -> list[bytes]:
        return [self._number(output.name) for output in self.graph.output]

    def leading(self) -> Iterator[onnx.NodeProto]:
        """The kernels that lead to a result, the last first."""
        wanted = {output.name for output in self.graph.output}
        for node in reversed(self.graph.node):
            if wanted.intersection(node.output):
                wanted.update(node.input[:1] if _is_view(node) else node.input)
                wanted.update(name for inner in subgraphs(node) for one in inner.node for name in one.input)
                yield node


def number_kernels(model: onnx.ModelProto, shapes: Shapes) -> Numbered:
    """`shapes`: of values by name, where the model may not tell."""
    opsets = {entry.domain.replace("ai.onnx", ""): entry.version for entry in model.opset_import}
    return Numbered(model.graph, dict(shapes), opsets).walk()


@cache
def _defaults(op_type: str, domain: str, opset: int) -> Mapping[str, bytes]:
    """Default attributes of an op, so that a default counts the same whether it is spelled out or left out."""
    try:
        known = onnx.defs.get_schema(op_type, opset, domain).attributes.values()
    except onnx.defs.SchemaError:  # the runtime's own op
        return {}
    told = [entry.default_value for entry in known if entry.default_value.type]
    return {entry.name: entry.SerializeToString(deterministic=True) for entry in told}


def find_astray(before: Numbered, after: Numbered) -> set[str]:
    """Names, in the graph `after`, of the values around the first kernels that are not those of `before`."""
    if before.results() == after.results():
        return set()
    known = set(before.numbers.values())
    leading = [node for node in after.leading() if not _is_view(node)]
    new = [node for node in leading if any(after.numbers[name] not in known for name in node.output if name)]
    makes = {name for node in new for name in node.output}
    first = [node for node in new if not any(after.bases.get(name, name) in makes for name in node.input)]
    made = {name for node in first for name in node.output}
    through = {name for name, base in after.bases.items() if base in made}
    next_ones = [node for node in new if (made | through).intersection(node.input)]
    found = {name for node in (*first, *next_ones) for name in (*node.input, *node.output) if name}
    return found | {after.bases[name] for name in found if name in after.bases} or {"?"}


def _slice(shape: Sequence[int], given: Sequence[list[int] | None]) -> tuple[range, ...]:
    """Which elements a Slice takes along each axis."""
    starts, ends, axes, steps = (*given, None, None)[:4]
    found = [range(size) for size in shape]
    for place, (start, end) in enumerate(zip(starts or (), ends or (), strict=True)):
        axis = axes[place] % len(shape) if axes else place
        found[axis] = found[axis][slice(start, end, steps[place] if steps else None)]
    return tuple(found)


def _is_view(node: onnx.NodeProto) -> bool:
    return node.op_type in VIEWS and node.domain in STANDARD


def _shapes_told(graph: onnx.GraphProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    for value in (*graph.input, *graph.value_info, *graph.output):
        if (shape := static_shape(value.type)) is not None:
            yield value.name, shape
    for constant in graph.initializer:
        yield constant.name, tuple(constant.dims)


def _content(tensor: onnx.TensorProto) -> bytes:
    """The content as bytes that are the same for the same numbers, however the file spells them."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.data_type != onnx.TensorProto.STRING:
        array = array_of(tensor)
        return _hash("constant", tensor.data_type, tuple(tensor.dims), array.tobytes())
    plain = deepcopy(tensor)
    plain.name = plain.doc_string = ""
    return _hash("constant", plain.SerializeToString(deterministic=True))


def _hash(*parts: object) -> bytes:
    found = blake2b(digest_size=16)
    for part in parts:
        text = part if isinstance(part, bytes) else repr(part).encode()
        found.update(len(text).to_bytes(8, "little"))
        found.update(text)
    return found.digest()
