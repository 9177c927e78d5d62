"""From a graph and a region to the same graph with the region's ops in pieces.

Invariant: inputs, weights and outputs are the original's, the ops are standard ones, and each piece's own results are
those of the whole op at its places (`ways.Way`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import onnx
from onnx import helper

from remat_cli.model.graph import Graph, Op, Value
from remat_cli.pieces.cutting import Cutting
from remat_cli.pieces.going import written
from remat_cli.pieces.regions import Links, Region


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
    ops, writer = written(graph, cutting)
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
