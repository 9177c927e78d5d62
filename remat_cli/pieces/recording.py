"""What is written down of cuts, enough to make the same graph in pieces of the same model again.

Invariant: what is replayed is the graph that was recorded, op by op and name by name, or it is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from remat_cli.errors import BadInput
from remat_cli.formats.planfile import CutOps, CutRegion
from remat_cli.model.graph import Graph, Op
from remat_cli.pieces.graph_in_pieces import InPieces, cut
from remat_cli.pieces.regions import Region, localized
from remat_cli.pieces.table import Table
from remat_cli.pieces.ways import Way

LOCAL = ", local"  # after the name of a way that carries local indices on


def record_of(regions: Sequence[Region], graph: Graph, exact: bool) -> CutOps:
    """How the graph came about, as a plan file says it: the ways of each region's ops, by name, and how many pieces."""
    said = (CutRegion(one.pieces, {name: _name(way) for name, way in one.ways.items()}) for one in regions)
    return CutOps(exact, digest(graph), tuple(said))


def replayed(graph: Graph, record: CutOps) -> InPieces:
    """The graph with the same regions cut in the same ways."""
    made = InPieces(graph, {})
    for region in record.regions:
        made = cut(made, _region(made.graph, region))
    if digest(made.graph) != record.sha256:
        raise BadInput(
            f"{graph.path} is cut into other pieces by this version of remat than by the one that made the plan; run"
            " 'remat solve' again"
        )
    return made


def digest(graph: Graph) -> str:
    """Of the ops and of what the file holds by name: weights' own bytes are the model's, whose digest a plan has."""
    found = hashlib.sha256()
    for node in graph.model.graph.node:
        found.update(node.SerializeToString(deterministic=True))
    for tensor in graph.model.graph.initializer:
        found.update(f"{tensor.name} {tensor.data_type} {list(tensor.dims)}\n".encode())
    return found.hexdigest()


def _name(way: Way) -> str:
    carried = way.carries and any(cut is not None and cut.local for cut in way.inputs)
    return way.name + LOCAL if carried else way.name


def _region(graph: Graph, said: CutRegion) -> Region:
    table, ops = Table(graph), {op.name: op for op in graph.ops}
    ways = {}
    for name, how in said.ways.items():
        if name not in ops:
            raise BadInput(f"{graph.path} has no op '{name}' to be cut, as the plan says; run 'remat solve' again")
        ways[name] = _way(table, ops[name], how)
    return Region(said.pieces, {op.name: ways[op.name] for op in graph.ops if op.name in ways})


def _way(table: Table, op: Op, how: str) -> Way:
    for way in table.ways(op):
        if way.name == how.removesuffix(LOCAL):
            return localized(way) if how.endswith(LOCAL) else way
    raise BadInput(
        f"op '{op.name}' ({op.op_type}) cannot be cut along {how}, as the plan says; run 'remat solve' again"
    )
