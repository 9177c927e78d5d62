"""What a run of a step writes over, and which of its ops run only before that: if one of these fails, nothing is lost.

Invariant: an op that is named runs before all updates, in whatever order the session runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from remat_cli.model.graph import Graph
from remat_cli.planning.stock.pins import find_ops_behind
from remat_cli.training.failing import NOTHING_WRITTEN, SMALL_BYTES, WrittenState


def written_in_order(graph: Graph | None, order: Sequence[str]) -> WrittenState:
    """Of a run of the ops in that order."""
    if graph is None:
        return NOTHING_WRITTEN
    writers = {op.name for op in graph.ops if not _large(graph).isdisjoint(op.writes)}
    first = next((place for place, name in enumerate(order) if name in writers), len(order))
    return WrittenState(frozenset(graph.in_place.values()), frozenset(order[:first]).difference(order[first:]))


def written_in_any_order(graph: Graph | None, model: onnx.ModelProto) -> WrittenState:
    """Of a run of the model, whatever the order."""
    if graph is None:
        return NOTHING_WRITTEN
    return WrittenState(frozenset(graph.in_place.values()), find_ops_behind(model.graph, _large(graph)))


def _large(graph: Graph) -> set[str]:
    return {name for name in graph.in_place if graph.values[name].bytes > SMALL_BYTES}
