"""From a graph and a region to the same graph with the region's ops in pieces.

Invariant: inputs, weights and outputs are the original's, the ops are standard ones, and each piece's own results are
those of the whole op at its places (`ways.Way`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx

from remat_cli.ingest import graph_of
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.walk import captures
from remat_cli.pieces.cutting import Cutting
from remat_cli.pieces.phases import positions
from remat_cli.pieces.regions import Links, Region
from remat_cli.pieces.writing import Rank, Writer, Written
from remat_cli.rewrite.orders import by_rank, edges


@dataclass(frozen=True, slots=True)
class InPieces:
    """`origin`: the op of the graph as it was that each op is a piece of, by name, where it is one."""

    graph: Graph
    origin: Mapping[str, str] = field(repr=False)


def in_pieces(graph: Graph, regions: Sequence[Region]) -> InPieces:
    """The graph with the regions cut one after the other; each is of the graph that the ones before it have made."""
    made = InPieces(graph, {})
    for region in regions:
        made = cut(made, region)
    return made


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
    writer = Writer(graph, cutting, positions(cutting))
    writer.write()
    whole = [Written(op.node, (float(place), 0.0)) for place, op in enumerate(graph.ops) if op.name not in cutting.ways]
    nodes = _in_order([*whole, *writer.written])
    model = _model(graph, [written.node for written in nodes], list(writer.constants.values()))
    made = graph_of(model, graph.path, graph.sha256)
    backward = {op.name for op in graph.ops if op.backward}
    of = {written.node.name: written.of for written in writer.written if written.of}
    ops = tuple(replace(op, backward=op.backward or of.get(op.name, op.name) in backward) for op in made.ops)
    return replace(made, ops=ops, dims=graph.dims, by_data=graph.by_data, expanded=True), of


def _in_order(nodes: Sequence[Written]) -> list[Written]:
    """One piece through a phase before the next, as far as what they read allows."""
    ranks: dict[Rank, int] = {rank: place for place, rank in enumerate(sorted({one.rank for one in nodes}))}
    reads = edges([[*one.node.input, *captures(one.node)] for one in nodes], [one.node.output for one in nodes])
    return [nodes[index] for index in by_rank(reads, [ranks[one.rank] for one in nodes])]


def _model(graph: Graph, nodes: Sequence[onnx.NodeProto], constants: Sequence[onnx.TensorProto]) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    fixed = [node for node in graph.model.graph.node if node.op_type == "Constant"]
    made = {name for node in nodes for name in node.output}
    kept = [entry for entry in graph.model.graph.value_info if entry.name in made]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend([*fixed, *nodes])
    model.graph.value_info.extend(kept)
    model.graph.initializer.extend(constants)
    return model
