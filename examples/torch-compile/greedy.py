"""Two plans as others describe theirs, under a peak: what is kept is decided greedily, by time a byte.

torchtitan's open pull request 4636 ranks what the forward pass leaves for the backward pass by the time of its op a
byte, and keeps the dearest. Here the cheapest are given up, one after the other, until the peak of the whole step fits.
The rest of that request is left out: it shares a budget among layers, and moves values to the CPU. What is not kept is
computed again before its first use in the backward pass. That one copy lives to its last use, as with torch's own
partitioner; or each use computes it anew, which two papers of autumn 2026 are said to propose. Neither paper could be
read here.

Invariant: an order is judged by the same simulation, costs and sizes as remat's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from remat_cli.torch import dropout, layouts
from remat_cli.torch import joint as joints
from remat_cli.torch.building import Split, build
from remat_cli.torch.checking import check
from remat_cli.torch.partition import Partitioner, PlannedJoint, Rooms
from remat_cli.torch.planning import judge
from solvers.problem import Problem
from solvers.schedule import evaluate


@dataclass(slots=True)
class GreedyPartitioner(Partitioner):
    """Plans by the ranking alone. `at_each_use`: nothing that is computed again waits for another use."""

    at_each_use: bool = False

    def _plan(
        self, module: fx.GraphModule, inputs: Any, num_fwd_outputs: int, room: Rooms, leaves: Sequence[bool]
    ) -> Split:
        masked = joints.copy_of(module)
        dropout.split(masked.graph)
        layouts.match(masked.graph, num_fwd_outputs, leaves)
        lowered = self._lower(masked, num_fwd_outputs)
        limit = room(lowered).limit
        order = greedy(lowered.problem, lowered.boundary, limit, self.at_each_use)
        split = build(lowered, order)
        check(module.graph, split[0].graph, split[1].graph, num_fwd_outputs)
        self.plans.append(PlannedJoint(lowered, judge(lowered.problem, order, limit)))
        return split


def greedy(problem: Problem, boundary: int, limit: int, at_each_use: bool) -> tuple[int, ...]:
    """The first order within `limit` bytes as values are given up, or else the leanest on the way."""
    nodes = problem.nodes
    wanted = {value for node in nodes[boundary + 1 :] for value in node.reads}
    kept = {op for op in range(boundary) if nodes[op].once or wanted.intersection(nodes[op].writes)}
    orders = [_order(problem, boundary, kept, at_each_use)]
    for op in sorted((op for op in kept if not nodes[op].once), key=lambda op: _time_a_byte(problem, op)):
        if evaluate(problem, orders[-1])[1].peak <= limit:
            return orders[-1]
        kept.remove(op)
        orders.append(_order(problem, boundary, kept, at_each_use))
    return min(orders, key=lambda order: max(limit, evaluate(problem, order)[1].peak))


def _time_a_byte(problem: Problem, op: int) -> float:
    return problem.nodes[op].cost / max(1, sum(problem.sizes[value] for value in problem.nodes[op].writes))


def _order(problem: Problem, boundary: int, kept: set[int], at_each_use: bool) -> tuple[int, ...]:
    """The forward pass, and the backward pass with what it needs of the ops that are not kept before each op."""
    nodes = problem.nodes
    maker = {value: op for op in range(boundary) for value in nodes[op].writes}
    fleeting = {value for value, op in maker.items() if op not in kept and problem.sizes[value]}
    there = set(range(len(problem.sizes))) - fleeting
    order = list(range(boundary + 1))

    def run(op: int) -> None:
        for value in nodes[op].reads:
            if value not in there:
                run(maker[value])
        order.append(op)
        there.update(nodes[op].writes)

    for op in range(boundary + 1, len(nodes)):
        run(op)
        if at_each_use:
            there.difference_update(fleeting)
    return tuple(order)
