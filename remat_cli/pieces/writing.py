"""A region's ops written in pieces: the ops of each piece, slices and joins, and the values and constants they need.

Invariant: every value that is read outside of the region, and every output of the graph, has the name it had. A slice
is read by one piece of one block alone, so that it need not be in memory for longer. What is new has the shape that the
cut gives it, so that nothing need be inferred.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.ingest.shapes import size_of
from remat_cli.model.graph import Graph, Op, Value
from remat_cli.onnx_graph.attributes import attribute, drop_attribute, set_attribute
from remat_cli.onnx_graph.names import Names
from remat_cli.pieces.cutting import Cut, Cutting
from remat_cli.pieces.ways import Range, Shape, Way

JOINING = -1  # the block of slices that are joined


class Writer:
    """Writes the pieces of one region. `block`: of each of its ops, since those of one block and piece share slices.

    `parts`: for each op and piece the op itself, and those that add it to a sum. `helpers`: slices and joins.
    """

    def __init__(self, graph: Graph, cutting: Cutting, block: Mapping[str, int]) -> None:
        self.graph, self.cutting, self.block = graph, cutting, block
        self.names = Names(set(graph.values))
        self.nodes = Names({node.name for node in graph.model.graph.node})
        self.parts: dict[str, list[list[Op]]] = {op.name: [] for op in cutting.ops}
        self.helpers: list[Op] = []
        self.values: dict[str, Value] = {}
        self.constants: dict[tuple[object, ...], onnx.TensorProto] = {}
        self.made: dict[str, list[tuple[str, Range]]] = {name: [] for name in cutting.along}
        self.slices: dict[tuple[object, ...], str] = {}
        self.sums: dict[str, str] = {}

    def write(self) -> None:
        for piece in range(self.cutting.pieces):
            for op, cut in self._cuts(piece):
                self.parts[op.name].append([])
                self._write(op, cut, piece)
        for op in self.cutting.ops:
            for name, along in zip(op.outputs, self.cutting.ways[op.name].outputs):
                if name and along and self.cutting.leaves(name):
                    self._join(op, name, along.axis)

    def _cuts(self, piece: int) -> Iterator[tuple[Op, Cut]]:
        cuts = self.cutting.cuts(piece)
        return ((op, cuts[op.name]) for op in self.cutting.ops)

    def _write(self, op: Op, cut: Cut, piece: int) -> None:
        way = self.cutting.ways[op.name]
        node = deepcopy(op.node)
        node.name = self.nodes.fresh(f"{op.name}/piece{piece}")
        node.input[:] = [
            self._operand(op, place, part, piece) for place, part in enumerate(cut.inputs[: len(op.inputs)])
        ]
        if way.total is None:
            node.output[:] = [self._piece_of(name, part, piece) for name, part in zip(op.outputs, cut.outputs)]
        self._suit(node, op, way, cut)
        if way.total is None:
            self._part(node, op, piece)
        else:
            self._sum(node, op, way, piece)

    def _piece_of(self, name: str, part: Range | None, piece: int) -> str:
        if not name or part is None:
            return ""
        made = self._value(f"{name}/piece{piece}", name, self.cutting.along[name].axis, part)
        self.made[name].append((made, part))
        return made

    def _value(self, stem: str, like: str, axis: int | None = None, part: Range | None = None) -> str:
        """A new value: as a known one, or as the part of it along an axis."""
        known, name = self.graph.values.get(like) or self.values[like], self.names.fresh(stem)
        shape = _shape_of(known.shape, axis, part)
        self.values[name] = Value(name, known.dtype, shape, size_of(known.dtype, shape))
        return name

    def _operand(self, op: Op, place: int, part: Range | None, piece: int) -> str:
        """What the piece reads: the whole, a piece just as made, or a slice of either."""
        cuts, name = self.cutting.ways[op.name].inputs, op.inputs[place]
        cut = cuts[place] if place < len(cuts) else None
        if part is None or cut is None:
            return name
        if name in self.made:
            source, held = self.made[name][piece]
            assert held == part or not cut.local, f"local indices in {name} are read in other pieces than made"
            if held == part:
                return source
            name, part = source, (part[0] - held[0], part[1] - held[0])
        return self._slice(op, (name, cut.axis, part), (self.block[op.name], piece))

    def _slice(self, op: Op, taken: tuple[str, int, Range], where: tuple[int, int]) -> str:
        """A slice, shared within the piece of a block."""
        key = (taken, where)
        if key not in self.slices:
            source, axis, part = taken
            made = self.slices[key] = self._value(f"{source}/slice{part[0]}", source, axis, part)
            bounds = [self._constant(np.array([number], np.int64)) for number in (*part, axis)]
            node = helper.make_node("Slice", [source, *bounds], [made], name=self.nodes.fresh(f"{made}/Slice"))
            self.helpers.append(_op_of(node, op))
        return self.slices[key]

    def _join(self, op: Op, name: str, axis: int) -> None:
        """The whole value, of the parts of its pieces that do not overlap."""
        parts = []
        size = self.cutting.sizes[name]
        for piece, (source, held) in enumerate(self.made[name]):
            part = self.cutting.part(size, piece)
            inner = (part[0] - held[0], part[1] - held[0])
            parts.append(source if held == part else self._slice(op, (source, axis, inner), (JOINING, piece)))
        node = helper.make_node("Concat", parts, [name], name=self.nodes.fresh(f"{name}/Concat"), axis=axis)
        self.helpers.append(_op_of(node, op))

    def _sum(self, node: onnx.NodeProto, op: Op, way: Way, piece: int) -> None:
        """Add the partial result to what there is so far."""
        total, whole = way.total, op.outputs[0]
        assert total is not None
        last = piece == self.cutting.pieces - 1
        end = whole if last and total.over == 1 else self._value(f"{whole}/sum{piece}", whole)
        before = self.sums.get(whole)
        self.sums[whole] = end
        if total.through is not None and before is not None:
            inputs = [*node.input, ""][: total.through]
            node.input[:] = [*inputs, before]
            set_attribute(node, "beta", 1.0)
        if total.through is not None or before is None:
            node.output[:] = [end]
            self._part(node, op, piece)
        else:
            partial = self._value(f"{whole}/piece{piece}", whole)
            node.output[:] = [partial]
            self._part(node, op, piece)
            adding = helper.make_node(total.op, [before, partial], [end], name=self.nodes.fresh(f"{end}/{total.op}"))
            self._part(adding, op, piece)
        if last and total.over != 1:
            dtype = helper.tensor_dtype_to_np_dtype(self.graph.values[whole].dtype)
            over = self._constant(np.array(total.over, dtype))
            dividing = helper.make_node("Div", [end, over], [whole], name=self.nodes.fresh(f"{whole}/Div"))
            self._part(dividing, op, piece)

    def _suit(self, node: onnx.NodeProto, op: Op, way: Way, cut: Cut) -> None:
        """What the op says of its own sizes, as it is of the piece."""
        shape = self.graph.values[op.outputs[0]].shape
        made = _shape_of(shape, way.outputs[0].axis if way.outputs[0] else None, cut.outputs[0])
        kind = op.op_type if op.domain == "" else ""
        if way.total and way.total.runs:
            self._as_sum(node, op)
        elif kind in ("Reshape", "Expand"):
            node.input[1] = self._constant(np.array(made, np.int64))
        elif kind == "ConstantOfShape":
            node.input[0] = self._constant(np.array(made, np.int64))
        elif kind == "Resize" and len(node.input) > 3 and node.input[3]:
            node.input[3] = self._constant(np.array(made, np.int64))
        elif way.slide and cut.outputs[0] is not None:
            _repad(node, way, cut.outputs[0])

    def _as_sum(self, node: onnx.NodeProto, op: Op) -> None:
        """A mean's pieces are sums, whose axes are an input."""
        axes = attribute(node, "axes")
        node.op_type = "ReduceSum"
        drop_attribute(node, "axes")
        if axes is not None:
            node.input[:] = [node.input[0], self._constant(np.array(axes, np.int64))]

    def _constant(self, array: np.ndarray) -> str:
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            numbers = "x".join(map(str, array.reshape(-1).tolist()))
            tensor = numpy_helper.from_array(array, self.names.fresh(f"pieces/{numbers}"))
            self.constants[key] = tensor
            self.values[tensor.name] = Value(tensor.name, tensor.data_type, array.shape, array.nbytes)
        return self.constants[key].name

    def _part(self, node: onnx.NodeProto, op: Op, piece: int) -> None:
        self.parts[op.name][piece].append(_op_of(node, op))


def _op_of(node: onnx.NodeProto, like: Op) -> Op:
    domain = "" if node.domain == "ai.onnx" else node.domain
    return Op(node.name, node.op_type, domain, tuple(node.input), tuple(node.output), node, backward=like.backward)


def _shape_of(shape: Shape, axis: int | None, part: Range | None) -> Shape:
    """The shape of a part."""
    if axis is None or part is None:
        return shape
    return (*shape[:axis], part[1] - part[0], *shape[axis + 1 :])


def _repad(node: onnx.NodeProto, way: Way, made: Range) -> None:
    """Padding at the ends of the whole alone."""
    slide, along = way.slide, way.outputs[0]
    assert slide is not None
    assert along is not None
    place, rank = along.axis - 2, len(slide.pads) // 2
    before, after = slide.padding(made)
    pads = list(slide.pads)
    pads[place], pads[place + rank] = before, max(0, after)
    set_attribute(node, "auto_pad", "NOTSET")
    set_attribute(node, "pads", pads)
    if slide.transposed:
        given = list(attribute(node, "output_padding", [0] * rank))
        given[place] = max(0, -after)
        set_attribute(node, "output_padding", given)
