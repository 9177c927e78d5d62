"""Converts a graph with costs to the scheduling problem: names become indices.

Invariant: node i is `graph.ops[i]`; values are numbered in the order in which they are written, and `values[v]` is the
name of value v. Inputs and weights are not values: they are in `resident`. A weight that is an output counts twice,
because the output is a copy. An output that takes the place of an input has no bytes of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement
from math import prod

import numpy as np

from remat_cli.model import semantics
from remat_cli.model.graph import Graph, Op
from remat_cli.model.kernel_kinds import kind_of
from remat_cli.model.semantics import lost_to_granules
from solvers.placement.chunks import rounded
from solvers.problem import RESIDENT, Node, Problem


@dataclass(frozen=True, slots=True)
class Named:
    """A problem with the names of its nodes and values.

    `rewritten`: the problem is that of a rewritten model, which lets unread values go; a model as it stands keeps them.
    """

    problem: Problem
    nodes: tuple[str, ...]
    values: tuple[str, ...]
    rewritten: bool = False
    aside: int = 0  # in bytes: the most that kernels and a device take beside their session's allocator


def problem_of(
    graph: Graph, costs: Mapping[str, tuple[int, int]], provider: str = "cpu", apart: Named | None = None
) -> Named:
    """The problem of running `graph`; `costs`: nanoseconds and workspace bytes of each op, by its name.

    `apart`: the problem of the same graph with nothing in place of anything else, where that is known.
    """
    values = tuple(name for op in graph.ops for name in op.writes) if apart is None else apart.values
    number = {name: index for index, name in enumerate(values)}
    given = {name: (place, graph.values[name].bytes) for place, name in enumerate((*graph.inputs, *graph.weights))}
    place = _Places(graph, number, given, frozenset(_living_in_inputs(graph)), provider)
    if apart is not None:
        return replace(apart, problem=_with_updates(place, apart.problem, costs))
    opset = graph.opset()
    optional = {number[op.outputs[place]] for op in graph.ops for place in semantics.optional_outputs(op, opset)}
    problem = Problem(
        nodes=tuple(_node(place, op, *costs[op.name]) for op in graph.ops),
        sizes=tuple(0 if name in graph.in_place else graph.values[name].bytes for name in values),
        outputs=tuple(number[name] for name in graph.outputs if name in number),
        resident=graph.resident + sum(graph.values[name].bytes for name in graph.outputs if name in graph.weights),
        optional=frozenset(optional),
        unread_stay=True,
    )
    shapes = {name: value.shape for name, value in graph.values.items()}
    aside = semantics.most_beside(semantics.aside(op, shapes, provider) for op in graph.ops)
    if provider == "cuda":  # inputs and weights lie in blocks of the driver's, each on its own
        aside += lost_to_granules(size for _, size in given.values())
    return Named(problem, tuple(op.name for op in graph.ops), values, aside=aside)


def _with_updates(places: _Places, apart: Problem, costs: Mapping[str, tuple[int, int]]) -> Problem:
    """The problem with nothing in place, with the ops that the graph has in place made anew."""
    nodes, sizes, in_place = list(apart.nodes), list(apart.sizes), places.graph.in_place
    for index, op in enumerate(places.graph.ops):
        if not in_place.keys().isdisjoint(op.writes):
            nodes[index] = _node(places, op, *costs[op.name])
    for name in in_place.keys() & places.number.keys():
        sizes[places.number[name]] = 0
    return replace(apart, nodes=tuple(nodes), sizes=tuple(sizes))


def as_rewritten(problem: Problem) -> Problem:
    """The problem of the rewritten model: it reads an empty slice of each unread value, which can be freed then."""
    return replace(problem, unread_stay=False)


def as_it_stands(problem: Problem) -> Problem:
    """The problem of the model before it is rewritten: it leaves nothing out, and keeps the values that nobody
    reads."""
    return replace(problem, unread_stay=True, optional=frozenset())


def _living_in_inputs(graph: Graph) -> set[str]:
    """Inputs, weights, and all views of them: nothing may be written over those."""
    fixed = {*graph.inputs, *graph.weights}
    for op in graph.ops:
        fixed.update(op.outputs[out] for out, into in semantics.views(op) if op.inputs[into] in fixed)
    return fixed


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the reads and writes of ops lie. `number`: of each value. `given`: the place and bytes of each input.

    `fixed`: values in the memory of inputs and weights, over which nothing may be written.
    """

    graph: Graph
    number: Mapping[str, int]
    given: Mapping[str, tuple[int, int]]
    fixed: frozenset[str]
    provider: str


def _node(places: _Places, op: Op, cost: int, workspace: int) -> Node:
    graph, number, given = places.graph, places.number, places.given
    views, over = semantics.views(op), semantics.overwrites(op, places.provider)
    updates = tuple((number[name], given[graph.in_place[name]][0]) for name in op.writes if name in graph.in_place)
    return Node(
        cost=cost,
        reads=tuple(number[name] for name in op.reads if name in number),
        writes=tuple(number[name] for name in op.writes),
        workspace=workspace,
        early=_early(graph, op, workspace) if workspace else (),
        once=semantics.runs_once(op) or bool(updates),
        views=_pairs(op, number, views) if views else (),
        overwrites=_pairs(op, number, _reusable(graph, op, over, places.fixed)) if over else (),
        backward=op.backward,
        kind=kind_of(op),
        takes=tuple(given[name] for name in op.reads if name in given),
        updates=updates,
    )


def _early(graph: Graph, op: Op, workspace: int) -> tuple[int, ...]:
    """Blocks that an op takes before its result has a place.

    `Where` selects from either side, each into memory of its own. `Einsum` transposes its reads, multiplies, and copies
    the product. The workspace was measured in chunks of the arena, and each block takes whole chunks.
    """
    if op.op_type == "Einsum" and not op.domain:
        pieces = [graph.values[name].bytes for name in (*op.inputs, op.outputs[0])]
        rest = workspace - sum(map(rounded, pieces))
        return (*pieces[:-1], *_split_into(rest, pieces), pieces[-1]) if rest > 0 else (workspace,)
    if op.op_type != "Where" or op.domain:
        return ()
    shapes = [graph.values[name].shape for name in op.inputs]
    result = graph.values[op.outputs[0]]
    element = result.bytes // max(1, prod(result.shape))
    return tuple(element * prod(np.broadcast_shapes(shapes[0], shape)) for shape in shapes[1:])


def _split_into(rest: int, pieces: Sequence[int]) -> tuple[int, ...]:
    """The rest of a workspace: one or two of the same blocks again, if it has exactly their bytes."""
    pairs = chain(combinations_with_replacement(pieces, 1), combinations_with_replacement(pieces, 2))
    return next((pair for pair in pairs if sum(map(rounded, pair)) == rest), (rest,))


def _pairs(op: Op, number: Mapping[str, int], places: semantics.Places) -> tuple[tuple[int, int], ...]:
    """Pairs (write, read) by number; RESIDENT for a read that is an input or a weight."""
    return tuple(
        (number[op.outputs[out]], number.get(op.inputs[into], RESIDENT)) for out, into in places if op.outputs[out]
    )


def _reusable(graph: Graph, op: Op, places: semantics.Places, fixed: frozenset[str]) -> semantics.Places:
    """The places where the runtime may reuse the read: it is not fixed, and known to have the result's shape and
    size."""
    return tuple(
        (out, into)
        for out, into in places
        if op.inputs[into]
        and op.inputs[into] not in fixed
        and op.inputs[into] not in graph.loose
        and graph.values[op.outputs[out]].shape == graph.values[op.inputs[into]].shape
        and graph.values[op.outputs[out]].bytes == graph.values[op.inputs[into]].bytes
    )
