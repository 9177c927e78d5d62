"""Graphs run op by op: each value is let go of right after its last use.

Invariant: nothing but the caller holds a value longer than the plan says, arguments included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from remat_cli.torch.bodies import watching
from remat_cli.torch.metering import Meter
from remat_cli.torch.private import BoxedCodeGen
from remat_cli.torch.reading import attribute
from remat_cli.torch.whole_step import WholeStep
from remat_cli.torch.workspaces import workspace_on_cpu

Compiled = Callable[[list[Any]], Any]


class Metered(fx.Interpreter):
    """Runs a graph, letting go of each value after its last use, and tells a meter of what is made."""

    def __init__(self, module: fx.GraphModule, meter: Meter) -> None:
        super().__init__(module)
        self.meter = meter

    def run_node(self, n: fx.Node) -> Any:
        works_in = workspace_on_cpu(n.target, *self.fetch_args_kwargs_from_env(n)) if n.op == "call_function" else 0
        with watching(n, self.meter):
            result = super().run_node(n)
        if n.op == "call_function":
            self.meter.made(result, works_in)
        return result


def op_by_op(
    module: fx.GraphModule,
    step: WholeStep,
    begin: Callable[[list[Any]], None],
    end: Callable[[Any], None] | None = None,
    first: bool = True,
) -> Compiled:
    """The graph as a function that empties the list of arguments it is given. `begin` hears of each run, and `end` of
    its results.

    All runs of the first whole step are metered. `first`: so is the first run, whenever that is.
    """
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.set_codegen(BoxedCodeGen())
    run = fx.GraphModule(module, graph)
    constants = [attribute(module, str(node.target)) for node in module.graph.find_nodes(op="get_attr")]
    seen = not first

    def call(arguments: list[Any]) -> Any:
        nonlocal seen
        begin(arguments)
        if seen and not step.metered():
            results = run.forward(arguments)
        else:
            seen = True
            step.meter.watch([arguments, constants])
            results = Metered(module, step.meter).boxed_run(arguments)
        if end is not None:
            end(results)
        return results

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def share_constants(copied: fx.GraphModule, graph: fx.GraphModule) -> None:
    """Give a copy of a graph the constants of that graph itself, so that they are held once."""
    for node in copied.graph.find_nodes(op="get_attr"):
        constant = attribute(graph, name := str(node.target))
        if isinstance(constant, torch.Tensor) and "." not in name:
            setattr(copied, name, constant)
