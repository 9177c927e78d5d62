"""Ops in pieces as they are asked for.

Invariant: what is asked for is done whole, or refused with the value and the op that are in the way.
"""

from __future__ import annotations

from remat_cli.errors import BadInput
from remat_cli.model.graph import Graph
from remat_cli.pieces.finding import Found, narrowed_to
from remat_cli.saying.units import show_bytes


def narrowed(graph: Graph, most: int, exact: bool = False) -> Found:
    """The graph in pieces in which no op makes a value of more than `most` bytes."""
    found = narrowed_to(graph, most, exact)
    if left := found.wider(most):
        op = next(op for op in found.made.graph.ops if left[0] in op.writes)
        size = found.made.graph.values[left[0]].bytes
        how = " with the same bits" if exact else ""
        raise BadInput(
            f"{graph.path}: value {left[0]!r}, which {op.op_type} {op.name!r} makes, has {show_bytes(size)} and cannot"
            f" be cut{how}; the least that can be asked for is about that"
        )
    return found
