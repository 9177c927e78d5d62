"""Graphs run op by op: each value is let go of right after its last use.

Invariant: nothing but the caller holds a value longer than the plan says, arguments included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import fx
from torch.fx.graph import _BoxedCodeGen

from remat_cli.torch.metering import Meter, Metered

Compiled = Callable[[list[Any]], Any]


@dataclass(slots=True)
class Watch:
    """A meter that looks on while each graph runs for the first time; with `always`, whenever one runs."""

    meter: Meter = field(default_factory=Meter)
    always: bool = False


def op_by_op(module: fx.GraphModule, watch: Watch) -> Compiled:
    """The graph as a function that empties the list of arguments it is given."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.set_codegen(_BoxedCodeGen())
    run = fx.GraphModule(module, graph)
    seen = False

    def call(arguments: list[Any]) -> Any:
        nonlocal seen
        if seen and not watch.always:
            return run.forward(arguments)
        seen = True
        watch.meter.watch(arguments)
        return Metered(module, watch.meter).boxed_run(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
