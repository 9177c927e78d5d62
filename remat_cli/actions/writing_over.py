"""What a run of a step writes over, and which of its ops run only before that: if one of these fails, nothing is lost.

Invariant: an op that is named runs before all updates, in whatever order the session runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from remat_cli.model.graph import Graph
from remat_cli.model.sessions import STRICT, Session
from remat_cli.planning.kinds import target_of
from remat_cli.training.failing import NOTHING_WRITTEN, SMALL_BYTES, WrittenState


def written_over(
    graph: Graph | None, model: onnx.ModelProto, order: Sequence[str], session: Session = STRICT
) -> WrittenState:
    """Of a run of the model in such a session. `order`: of the graph's ops, by the plan."""
    if graph is None:
        return NOTHING_WRITTEN
    large = {name for name in graph.in_place if graph.values[name].bytes > SMALL_BYTES}
    before = target_of(session).runs_before(large, graph, model, order)
    return WrittenState(frozenset(graph.in_place.values()), before)
