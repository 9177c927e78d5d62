"""The nodes of the rewritten graph: one for each compute of a plan, each reading the newest copies.

Invariant: every name is new or the original's; the first copy of a node keeps its name, and the last copy of a graph
output has the output's. Nothing but names changes in a copied node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.model.graph import Graph, Op
from remat_cli.onnx_graph.walk import subgraphs

Told = tuple[int, tuple[int, ...]]  # the type and shape of a tensor
COPY = "__remat_"  # the mark in the name of a copy; a number follows


@dataclass(frozen=True, slots=True)
class OpRun:
    """One compute of a plan: which op, and which of its writes are kept."""

    op: Op
    kept: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class EmittedNode:
    """A node of the rewritten graph. `op`: the op it computes, or None for what was added around them."""

    node: onnx.NodeProto
    op: Op | None
    origin: Mapping[str, str]  # its outputs -> the values of the model that they are copies of
    reads: tuple[str, ...]  # captures included
    bytes: int = 0  # bytes of the outputs that are no copies
    hides: bool = False  # the shape of what it makes, which so nothing is written over
    told: Told | None = None  # of its output, where that is no copy

    @property
    def made(self) -> str:
        """Its first output."""
        return str(self.node.output[0])


class CopyNames:
    """Makes names that nothing in the model has."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def taken(self) -> set[str]:
        return set(self.graph.values) | set(_names(self.graph.model.graph))

    def copy(self, name: str, number: int) -> str:
        """`name__remat_1`; further underscores keep it apart from a name of the model's own."""
        fresh = f"{name}{COPY}{number}"
        while fresh in self.taken:
            fresh += "_"
        self.taken.add(fresh)
        return fresh

    def added(
        self,
        kind: str,
        reads: Sequence[str],
        stem: str,
        number: int = 1,
        *,
        constants: Sequence[str] = (),
        of: str = "",
        size: int = 0,
        hides: bool = False,
        told: Told | None = None,
        **attributes: int,
    ) -> EmittedNode:
        """A node with one output that the model had not. `of`: the value whose bytes it makes; the others are fields of
        `EmittedNode`."""
        fresh = self.copy(stem, number)
        node = helper.make_node(kind, [*reads, *constants], [fresh], name=fresh, **attributes)
        return EmittedNode(node, None, {fresh: of} if of else {}, tuple(reads), size, hides, told)


class Numbers:
    """Constants that such nodes read, each made once."""

    def __init__(self, names: CopyNames, stem: str) -> None:
        self.names, self.stem = names, stem
        self.made: dict[tuple[int, ...], onnx.TensorProto] = {}

    def name_of(self, numbers: tuple[int, ...]) -> str:
        if numbers not in self.made:
            name = self.names.copy(self.stem, len(self.made) + 1)
            self.made[numbers] = numpy_helper.from_array(np.array(numbers, np.int64), name)
        return self.made[numbers].name


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield node.name
        yield from node.input
        yield from node.output
        for inner in subgraphs(node):
            yield from _names(inner)
    yield from (entry.name for entry in (*graph.input, *graph.output, *graph.initializer))


def copy_ops(graph: Graph, runs: Sequence[OpRun], names: CopyNames) -> list[EmittedNode]:
    """The plan's computes as nodes, in its order."""
    kept_by = [list(compress(run.op.writes, run.kept)) for run in runs]
    writes = Counter(chain.from_iterable(kept_by))
    outputs = set(graph.outputs)
    newest: dict[str, str] = {}  # value -> the name of its newest copy
    ran: Counter[str] = Counter()
    made: Counter[str] = Counter()
    steps = []
    for run, kept in zip(runs, kept_by, strict=True):
        node = deepcopy(run.op.node)
        if ran[run.op.name]:
            node.name = names.copy(run.op.name, ran[run.op.name])
        ran[run.op.name] += 1
        reads = tuple(newest.get(name, name) for name in run.op.reads)
        rename(node, newest, inside=bool(run.op.captures))
        origin = {}
        for value in kept:
            last = made[value] + 1 == writes[value]
            plain = last if value in outputs else not made[value]
            made[value] += 1
            number = made[value] if value in outputs else made[value] - 1
            newest[value] = value if plain else names.copy(value, number)
            origin[newest[value]] = value
        _name_outputs(node, run.op.outputs, set(kept), newest)
        steps.append(EmittedNode(node, run.op, origin, reads))
    return steps


def _name_outputs(
    node: onnx.NodeProto, outputs: Sequence[str], kept: Collection[str], newest: Mapping[str, str]
) -> None:
    given = [newest[value] if value in kept else "" for value in outputs]
    while given and not given[-1]:
        given.pop()
    if given != list(outputs):
        del node.output[:]
        node.output.extend(given)


def rename(node: onnx.NodeProto, newest: Mapping[str, str], inside: bool = True) -> None:
    """Make a node read other values, and every subgraph inside it, if those may read any of them."""
    changed = {name: newest[name] for name in node.input if newest.get(name, name) != name}
    if changed:
        given = [changed.get(name, name) for name in node.input]
        del node.input[:]
        node.input.extend(given)
    for inner in subgraphs(node) if inside else ():
        _rename_inside(inner, newest)


def _rename_inside(graph: onnx.GraphProto, newest: Mapping[str, str]) -> None:
    own = {entry.name for entry in (*graph.input, *graph.initializer)}
    own.update(name for node in graph.node for name in node.output)
    outer = {name: copy for name, copy in newest.items() if name not in own and name != copy}
    if not outer:
        return
    for node in graph.node:
        rename(node, outer)
    for output in graph.output:
        output.name = outer.get(output.name, output.name)


def infos(graph: Graph, steps: Iterable[EmittedNode], known: set[str]) -> Iterator[onnx.ValueInfoProto]:
    """Types and shapes of copies, where the model records those of the originals, and of what is told besides."""
    for step in steps:
        if step.told is not None:
            yield helper.make_tensor_value_info(step.node.output[0], *step.told)
        for name, value in step.origin.items():
            if name != value and value in known:
                tensor = graph.values[value]
                yield helper.make_tensor_value_info(name, tensor.dtype, tensor.shape)
