"""Which ops the runtime really fuses: read from the graph that it has optimized, on the provider it will run on.

Invariant: ops share a number only if the optimized graph computes all of them in one node; the ops are the model's own,
and every other op has a kernel to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import onnx

from profiles.running import CannotRun
from remat_cli.errors import BadInput
from remat_cli.model.graph import Graph, Op
from remat_cli.model.problem_of import Named
from remat_cli.planning.subjects.subject import Subject
from remat_cli.runtime.optimized import LAYOUTS, optimize
from solvers.problem import Problem

MOVERS = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Slice", "Expand", "Gather"}
HEAVY_BYTES = 1 << 30


def as_fused(subject: Subject, provider: str = "cpu") -> Subject:
    """The subject with each op that the runtime fuses marked with the number of its kernel."""
    if subject.graph is None:
        raise BadInput(f"{subject.path} is a bare problem: the runtime can fuse only ops of a model")
    kernels = find_fused_kernels(subject.graph, provider)
    return subject.solving(_mark(subject.problem, [kernels.get(name, -1) for name in subject.nodes]))


def heavy(graph: Graph) -> bool:
    """Whether its weights are too large to be loaded only to see what would be fused."""
    return sum(graph.values[name].bytes for name in graph.weights) > HEAVY_BYTES


def keeping_bits(graph: Graph, named: Named, fused: bool = False) -> Named:
    """The graph's problem, told which values live only within kernels that the runtime fuses by default: none where it
    is `fused` already.

    No result may be left out there: optimizers remove a Dropout without its mask. Where the runtime cannot run the
    model there is no default session either; weights of more than `HEAVY_BYTES` are not loaded only to see what would
    be fused.
    """
    named = replace(named, problem=replace(named.problem, optional=frozenset()))
    if fused or heavy(graph):
        return named
    try:
        names = inner_values(graph)
    except BadInput:
        return named
    inner = frozenset(place for place, name in enumerate(named.values) if name in names)
    return replace(named, problem=replace(named.problem, inner=inner))


def inner_values(graph: Graph, provider: str = "cpu") -> frozenset[str]:
    """Values that the optimized graph no longer has, as they are computed within another op's kernel.

    Not those that were only moved about, whose bits are the same; nor those that depend on weights alone, or that
    another op computes as well, which are gone without being fused.
    """
    fused = _optimize(graph, provider, "all").graph  # where a convolution, a sum and a Relu are one, too
    left = {name for node in fused.node for name in node.output}.union(entry.name for entry in fused.initializer)
    fixed = set(graph.weights)
    twins = Counter(_computes(op) for op in graph.ops)
    inner: set[str] = set()
    for op in graph.ops:
        if fixed.issuperset(op.reads):
            fixed.update(op.writes)
        elif op.op_type not in MOVERS and twins[_computes(op)] == 1:
            inner.update(name for name in op.writes if name not in left)
    read = {name for op in graph.ops for name in op.reads}
    return frozenset(inner & read - set(graph.outputs))


def _computes(op: Op) -> tuple[object, ...]:
    attributes = tuple(sorted(entry.SerializeToString(deterministic=True) for entry in op.node.attribute))
    return op.domain, op.op_type, op.inputs, attributes


def find_fused_kernels(graph: Graph, provider: str = "cpu") -> dict[str, int]:
    """The number of the kernel of each op that has no kernel to itself."""
    model = _optimize(graph, provider)
    producer = {name: place for place, op in enumerate(graph.ops) for name in op.writes}
    left = {name for node in model.graph.node for name in node.output if name}
    found: dict[str, int] = {}
    for number, node in enumerate(model.graph.node):
        covered, read = _cover(graph, producer, left, node)
        if len(covered) > 1 and read <= set(node.input):  # else it reads a twin of what was there
            for place in covered:
                found.setdefault(graph.ops[place].name, number)
    alone = {number for number, many in Counter(found.values()).items() if many == 1}
    return {name: number for name, number in found.items() if number not in alone}


def _cover(
    graph: Graph, producer: Mapping[str, int], left: set[str], node: onnx.NodeProto
) -> tuple[set[int], set[str]]:
    """The ops whose work an optimized node does, back from its results to what is left; and what they read of that."""
    covered: set[int] = set()
    read: set[str] = set()
    waiting = [producer[name] for name in node.output if name in producer]
    while waiting:
        place = waiting.pop()
        if place in covered:
            continue
        covered.add(place)
        for name in graph.ops[place].reads:
            if name in producer and name not in left:
                waiting.append(producer[name])
            elif name in producer or name in graph.inputs:
                read.add(name)
    return covered, read


def _optimize(graph: Graph, provider: str, level: str = "extended") -> onnx.ModelProto:
    """What onnxruntime makes of the graph, without its own memory layouts."""
    content, folder = graph.model.SerializeToString(), graph.path.resolve().parent
    try:
        return optimize(content, folder, level, provider, LAYOUTS)
    except CannotRun as refused:
        words = f"onnxruntime cannot run {graph.path}, so it is not known what it fuses: {refused}"
        raise BadInput(words) from refused


def _mark(problem: Problem, kernels: list[int]) -> Problem:
    nodes = zip(problem.nodes, kernels, strict=True)
    return replace(problem, nodes=tuple(replace(node, fused=kernel) for node, kernel in nodes))
