"""Graphs run op by op: each value is let go of right after its last use.

Invariant: nothing but the caller holds a value longer than the plan says, arguments included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx
from torch.fx.graph import _BoxedCodeGen

from remat_cli.torch.metering import Meter

Compiled = Callable[[list[Any]], Any]


@dataclass(slots=True)
class Watch:
    """Who looks on while graphs run: a meter, or nobody."""

    meter: Meter | None = None


def op_by_op(module: fx.GraphModule, watch: Watch) -> Compiled:
    """The graph as a function that empties the list of arguments it is given."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.set_codegen(_BoxedCodeGen())
    run = fx.GraphModule(module, graph)

    def call(arguments: list[Any]) -> Any:
        if watch.meter is None:
            return run.forward(arguments)
        watch.meter.watch(arguments)
        with watch.meter:
            return run.forward(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
