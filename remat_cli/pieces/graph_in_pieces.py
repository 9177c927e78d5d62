"""From a graph and a region to the same graph with the region's ops in pieces.

Invariant: inputs, weights and outputs are the original's, the ops are standard ones, and each piece's own results are
those of the whole op at its places (`ways.Way`). Each op runs once, after all that it reads; slices and joins are made
where they are read first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import onnx
from onnx import helper

from remat_cli.model.graph import Graph, Op, Value
from remat_cli.pieces.blocks import list_blocks, list_parts
from remat_cli.pieces.cutting import Cutting
from remat_cli.pieces.regions import Links, Region
from remat_cli.pieces.writing import Writer


@dataclass(frozen=True, slots=True)
class InPieces:
    """`origin`: the op of the graph as it was that each op is a piece of, by name, where it is one."""

    graph: Graph
    origin: Mapping[str, str] = field(repr=False)


def cut(before: InPieces, region: Region) -> InPieces:
    """One more region, of a graph that may be in pieces already."""
    made, of = _cut(before.graph, region)
    known = before.origin
    origin = {op.name: known[op.name] for op in made.ops if op.name in known}
    return InPieces(made, origin | {name: known.get(op, op) for name, op in of.items()})


def _cut(graph: Graph, region: Region) -> tuple[Graph, dict[str, str]]:
    cutting = Cutting(Links(graph), region)
    if cutting.pieces < 2:
        return graph, {}
    ops, writer = _written(graph, cutting)
    values = {**graph.values, **writer.values}
    kept = {*graph.inputs, *graph.weights, *(name for op in ops for name in op.writes), *writer.values}
    constants = list(writer.constants.values())
    made = replace(
        graph,
        model=_model(graph, ops, writer.values, constants),
        ops=tuple(ops),
        values={name: value for name, value in values.items() if name in kept},
        weights=(*graph.weights, *(tensor.name for tensor in constants)),
        expanded=True,
    )
    return made, {part[0].name: name for name, parts in writer.parts.items() for part in parts}


def _written(graph: Graph, cutting: Cutting) -> tuple[list[Op], Writer]:
    """The ops in the order in which they run, that of the whole graph gone in pieces, and who wrote the new ones."""
    blocks = list(list_blocks(cutting, graph.ops))
    writer = Writer(graph, cutting, {op.name: number for number, block in enumerate(blocks) for op in block})
    writer.write()
    walk = _Walk(cutting, writer)
    for block in blocks:
        walk.go(block)
    walk.need(graph.outputs)
    return walk.order, writer


class _Walk:
    """`waiting`: by what they make, slices, joins, and ops of the block that are whole, where they have not run."""

    def __init__(self, cutting: Cutting, writer: Writer) -> None:
        self.cutting, self.parts = cutting, writer.parts
        self.waiting = {name: op for op in writer.helpers for name in op.writes}
        self.order: list[Op] = []

    def go(self, block: Sequence[Op]) -> None:
        """Part by part, and one piece through it before the next. What is whole runs at its place at the latest."""
        self.waiting |= {name: op for op in block if op.name not in self.parts for name in op.writes}
        for part in list_parts(self.cutting, block):
            for piece in range(self.cutting.pieces):
                for op in part:
                    if op.name in self.parts:
                        self.run(self.parts[op.name][piece])
                    else:
                        self.need(op.writes)

    def run(self, ops: Iterable[Op]) -> None:
        for op in ops:
            self.need(op.reads)
            self.order.append(op)

    def need(self, values: Iterable[str]) -> None:
        for value in values:
            if op := self.waiting.get(value):
                for name in op.writes:
                    del self.waiting[name]
                self.run([op])


def _model(
    graph: Graph, ops: Sequence[Op], new: Mapping[str, Value], constants: Sequence[onnx.TensorProto]
) -> onnx.ModelProto:
    model = deepcopy(graph.model)
    fixed = [node for node in graph.model.graph.node if node.op_type == "Constant"]
    made = {name for op in ops for name in op.writes}
    kept = [entry for entry in graph.model.graph.value_info if entry.name in made]
    fresh = [value for name, value in new.items() if name in made]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend([*fixed, *(op.node for op in ops)])
    model.graph.value_info.extend(kept)
    model.graph.value_info.extend(helper.make_tensor_value_info(one.name, one.dtype, one.shape) for one in fresh)
    model.graph.initializer.extend(constants)
    return model
