"""torch's own partitions as orders of computes: no plan is worse than they are under the same costs.

Invariant: an order is given only if it is legal; what torch splits in a way that no order says is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from torch import fx

from remat_cli.torch.joint import copy_of
from remat_cli.torch.lowering import Lowered
from remat_cli.torch.private import functorch_config, partition_by_torch
from solvers.clock import Clock
from solvers.plan import IllegalOrder
from solvers.schedule import evaluate
from solvers.simulate import IllegalPlan

Settings = tuple[tuple[str, float], ...]
SETTINGS: Settings = (
    *(("dp", 1.0), ("dp", 0.5), ("dp", 0.0), ("ilp", 0.5), ("dp", 0.8), ("dp", 0.2), ("ilp", 0.3), ("ilp", 0.7)),
    *(("dp", share / 10) for share in (1, 3, 4, 6, 7, 9)),
    *(("ilp", share / 10) for share in (1, 2, 4, 6, 8, 9)),
)
SHARE = 0.3  # share of a graph's time


def torchs_own(
    module: fx.GraphModule, inputs: Any, num_fwd_outputs: int, solver: str = "dp", budget: float = 1.0
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The partition that torch itself makes of a joint graph, which is not changed."""
    with functorch_config.patch(activation_memory_budget=budget, activation_memory_budget_solver=solver):
        return partition_by_torch(copy_of(module), inputs, num_fwd_outputs=num_fwd_outputs)


def order_of(lowered: Lowered, forward: fx.GraphModule, backward: fx.GraphModule) -> tuple[int, ...] | None:
    """A partition as an order, if there is one: names tell which op a call is a copy of.

    What runs once here is not run again: the caller holds what it makes, so that torch's second run has no use.
    """
    number = {op.name: index for index, op in reversed([*enumerate(lowered.ops)]) if op is not None}
    order: list[int] = []
    done: set[int] = set()
    for graph in (forward.graph, backward.graph):
        if graph is backward.graph:  # where an op has a node for each pass, the second one
            number = {op.name: index for index, op in enumerate(lowered.ops) if op is not None}
        for node in graph.nodes:
            if node.op == "call_function" and node.name in number and number[node.name] not in done:
                order.append(number[node.name])
                if lowered.problem.nodes[number[node.name]].once:
                    done.add(number[node.name])
        if graph is forward.graph:
            order.append(lowered.boundary)
    try:
        evaluate(lowered.problem, order)
    except (IllegalOrder, IllegalPlan):
        return None
    return tuple(order)


def seeds(lowered: Lowered, module: fx.GraphModule, inputs: Any, clock: Clock) -> Iterator[tuple[int, ...]]:
    """The orders of torch's own partitions, the most different first, as many as a share of the time allows."""
    clock = clock.share(SHARE)
    for solver, budget in SETTINGS:
        if clock.over():
            return
        if solver == "ilp" and find_spec("scipy") is None:  # which it needs
            continue
        try:
            split = torchs_own(module, inputs, len(lowered.joint.forward_outputs), solver, budget)
        except Exception:  # noqa: BLE001  a seed is a hint: torch's partitioners assert and fail on many graphs
            continue
        order = order_of(lowered, *split)
        if order is not None:
            yield order
