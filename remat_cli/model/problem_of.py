"""From a graph with costs to the scheduling problem: names become indices.

Invariant: node i is `graph.ops[i]`; values are numbered in the order in which they are written, and `values[v]` is the
name of value v. Inputs and weights are not values: they are in `resident`, weights twice if they are outputs, which are
copies. An output that takes the place of an input has no bytes of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement
from math import prod

from remat_cli.model import semantics
from remat_cli.model.graph import Graph, Op
from solvers.placement.region import rounded
from solvers.problem import RESIDENT, Node, Problem


@dataclass(frozen=True, slots=True)
class Named:
    """A problem, and what its nodes and values are called.

    `rewritten`: it is that of a model as remat rewrites it; the model as it stands keeps every value that nobody reads.
    """

    problem: Problem
    nodes: tuple[str, ...]
    values: tuple[str, ...]
    rewritten: bool = False
    aside: int = 0  # bytes: the most that kernels take beside their session's allocator


def problem_of(graph: Graph, costs: Mapping[str, tuple[int, int]], provider: str = "cpu") -> Named:
    """The problem of running `graph`; `costs`: nanoseconds and workspace bytes of each op, by its name."""
    values = tuple(name for op in graph.ops for name in op.writes)
    number = {name: index for index, name in enumerate(values)}
    opset = graph.opsets.get("", graph.opsets.get("ai.onnx", 1))
    optional = {number[op.outputs[place]] for op in graph.ops for place in semantics.optional_outputs(op, opset)}
    outputs = tuple(number[name] for name in graph.outputs if name in number)
    fixed = _living_in_inputs(graph)
    given = {name: (place, graph.values[name].bytes) for place, name in enumerate((*graph.inputs, *graph.weights))}
    problem = Problem(
        nodes=tuple(_node(graph, op, number, costs[op.name], provider, fixed, given) for op in graph.ops),
        sizes=tuple(0 if name in graph.in_place else graph.values[name].bytes for name in values),
        outputs=outputs,
        resident=graph.resident + sum(graph.values[name].bytes for name in graph.outputs if name in graph.weights),
        optional=frozenset(optional),
        unread_stay=True,
    )
    shapes = {name: value.shape for name, value in graph.values.items()}
    aside = semantics.held_beside(semantics.aside(op, shapes, provider) for op in graph.ops)
    return Named(problem, tuple(op.name for op in graph.ops), values, aside=aside)


def rewritten(problem: Problem) -> Problem:
    """The same for a model that remat rewrites: it reads an empty slice of what nobody reads, and so lets it go."""
    return replace(problem, unread_stay=False)


def as_it_stands(problem: Problem) -> Problem:
    """The model before it is rewritten: it leaves nothing out, and keeps what nobody reads."""
    return replace(problem, unread_stay=True, optional=frozenset())


def _living_in_inputs(graph: Graph) -> set[str]:
    """Inputs, weights, and all views of them: nothing may be written over those."""
    fixed = {*graph.inputs, *graph.weights}
    for op in graph.ops:
        fixed.update(op.outputs[out] for out, into in semantics.views(op) if op.inputs[into] in fixed)
    return fixed


def _node(
    graph: Graph,
    op: Op,
    number: Mapping[str, int],
    cost: tuple[int, int],
    provider: str,
    fixed: set[str],
    given: Mapping[str, tuple[int, int]],
) -> Node:
    updates = tuple((number[name], given[graph.in_place[name]][0]) for name in op.writes if name in graph.in_place)
    return Node(
        cost=cost[0],
        reads=tuple(number[name] for name in op.reads if name in number),
        writes=tuple(number[name] for name in op.writes),
        workspace=cost[1],
        early=_early(graph, op, cost[1]) if cost[1] else (),
        once=semantics.runs_once(op) or bool(updates),
        views=_pairs(op, number, semantics.views(op)),
        overwrites=_pairs(op, number, _reusable(graph, op, semantics.overwrites(op, provider), fixed)),
        backward=op.backward,
        kind=semantics.kind(op),
        takes=tuple(given[name] for name in op.reads if name in given),
        updates=updates,
    )


def _early(graph: Graph, op: Op, workspace: int) -> tuple[int, ...]:
    """What an op takes before its result has a place.

    `Where` selects from either side, each into memory of its own. `Einsum` transposes what it reads, multiplies, and
    copies the product. What an op works in was measured in chunks of the arena, which each piece takes whole.
    """
    if op.op_type == "Einsum" and not op.domain:
        pieces = [graph.values[name].bytes for name in (*op.inputs, op.outputs[0])]
        rest = workspace - sum(map(rounded, pieces))
        return (*pieces[:-1], *_made_of(rest, pieces), pieces[-1]) if rest > 0 else (workspace,)
    if op.op_type != "Where" or op.domain:
        return ()
    shapes = [graph.values[name].shape for name in op.inputs]
    result = graph.values[op.outputs[0]]
    element = result.bytes // max(1, prod(result.shape))
    return tuple(element * prod(_broadcast(shapes[0], shape)) for shape in shapes[1:])


def _made_of(rest: int, pieces: Sequence[int]) -> tuple[int, ...]:
    """What is left of a workspace, as one or two of the same pieces once more if it is just as much as those."""
    pairs = chain(combinations_with_replacement(pieces, 1), combinations_with_replacement(pieces, 2))
    return next((pair for pair in pairs if sum(map(rounded, pair)) == rest), (rest,))


def _broadcast(one: Sequence[int], two: Sequence[int]) -> tuple[int, ...]:
    rank = max(len(one), len(two))
    pairs = zip((1,) * (rank - len(one)) + tuple(one), (1,) * (rank - len(two)) + tuple(two), strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)


def _pairs(op: Op, number: Mapping[str, int], places: semantics.Places) -> tuple[tuple[int, int], ...]:
    """(write, read) by number; RESIDENT for a read that is an input or a weight."""
    return tuple(
        (number[op.outputs[out]], number.get(op.inputs[into], RESIDENT)) for out, into in places if op.outputs[out]
    )


def _reusable(graph: Graph, op: Op, places: semantics.Places, fixed: set[str]) -> semantics.Places:
    """The places where the runtime may reuse the read: not fixed, and known to be of the result's shape and size."""
    return tuple(
        (out, into)
        for out, into in places
        if op.inputs[into]
        and op.inputs[into] not in fixed
        and op.inputs[into] not in graph.loose
        and graph.values[op.outputs[out]].shape == graph.values[op.inputs[into]].shape
        and graph.values[op.outputs[out]].bytes == graph.values[op.inputs[into]].bytes
    )
