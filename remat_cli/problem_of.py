"""From a graph with costs to the scheduling problem: names become indices.

Invariant: node i is `graph.ops[i]`; values are numbered in the order in which they are written, and `values[v]` is the
name of value v. Inputs and weights are not values: they are in `resident`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from remat_cli import semantics
from remat_cli.graph import Graph, Op
from solvers.problem import RESIDENT, Node, Problem


@dataclass(frozen=True, slots=True)
class Named:
    """A problem, and what its nodes and values are called."""

    problem: Problem
    nodes: tuple[str, ...]
    values: tuple[str, ...]


def problem_of(graph: Graph, costs: Mapping[str, tuple[int, int]], provider: str = "cpu") -> Named:
    """The problem of running `graph`; `costs`: nanoseconds and workspace bytes of each op, by its name."""
    values = tuple(name for op in graph.ops for name in op.writes)
    number = {name: index for index, name in enumerate(values)}
    opset = graph.opsets.get("", graph.opsets.get("ai.onnx", 1))
    optional = {number[op.outputs[place]] for op in graph.ops for place in semantics.optional_outputs(op, opset)}
    outputs = tuple(number[name] for name in graph.outputs if name in number)
    problem = Problem(
        nodes=tuple(_node(graph, op, number, costs[op.name], provider) for op in graph.ops),
        sizes=tuple(graph.values[name].bytes for name in values),
        outputs=outputs,
        resident=graph.resident,
        optional=frozenset(optional.difference(outputs)),
        unread_stay=True,
    )
    return Named(problem, tuple(op.name for op in graph.ops), values)


def _node(graph: Graph, op: Op, number: Mapping[str, int], cost: tuple[int, int], provider: str) -> Node:
    return Node(
        cost=cost[0],
        reads=tuple(number[name] for name in op.reads if name in number),
        writes=tuple(number[name] for name in op.writes),
        workspace=cost[1],
        once=semantics.runs_once(op),
        views=tuple(_pairs(op, number, semantics.views(op))),
        overwrites=tuple(
            (write, read)
            for write, read in _pairs(op, number, semantics.overwrites(op, provider))
            if read != RESIDENT and _alike(graph, op)
        ),
        backward=op.backward,
        kind=semantics.kind(op),
    )


def _pairs(op: Op, number: Mapping[str, int], places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(write, read) by number; RESIDENT for a read that is an input or a weight."""
    for out, into in places:
        if out < len(op.outputs) and op.outputs[out] and into < len(op.inputs) and op.inputs[into]:
            yield number[op.outputs[out]], number.get(op.inputs[into], RESIDENT)


def _alike(graph: Graph, op: Op) -> bool:
    """Whether result and first input have elements alike, as many of them: only then does a runtime reuse."""
    result, read = graph.values[op.outputs[0]], graph.values[op.inputs[0]]
    return (result.dtype, result.bytes) == (read.dtype, read.bytes)
