"""Finds the ops that the runtime really fuses, in the graph that it has optimized for the provider it will run on.

Invariant: ops share a kernel's number only if the optimized graph computes all of them in one node. The ops are the
model's own, and every other op has a kernel to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import onnx

from profiles.running import CannotRun
from remat_cli.errors import BadInput
from remat_cli.model.graph import Graph
from remat_cli.planning.subjects.subject import Subject
from remat_cli.runtime.optimized import LAYOUTS, optimize
from solvers.problem import Problem


def as_fused(subject: Subject, provider: str = "cpu") -> Subject:
    """The subject with each op that the runtime fuses marked with the number of its kernel."""
    if subject.graph is None:
        raise BadInput(f"{subject.path} is a bare problem: the runtime can fuse only ops of a model")
    kernels = find_fused_kernels(subject.graph, provider)
    return subject.solving(_mark(subject.problem, [kernels.get(name, -1) for name in subject.nodes]))


def find_fused_kernels(graph: Graph, provider: str = "cpu") -> dict[str, int]:
    """The number of the kernel of each op that shares its kernel with others."""
    model = as_the_runtime_has_it(graph, provider)
    producer = {name: place for place, op in enumerate(graph.ops) for name in op.writes}
    left = {name for node in model.graph.node for name in node.output if name}
    found: dict[str, int] = {}
    for number, node in enumerate(model.graph.node):
        covered, read = _cover(graph, producer, left, node)
        if len(covered) > 1 and read <= set(node.input):  # otherwise it reads a twin of the value that was there
            for place in covered:
                found.setdefault(graph.ops[place].name, number)
    alone = {number for number, many in Counter(found.values()).items() if many == 1}
    return {name: number for name, number in found.items() if number not in alone}


def _cover(
    graph: Graph, producer: Mapping[str, int], left: set[str], node: onnx.NodeProto
) -> tuple[set[int], set[str]]:
    """The ops whose work an optimized node does, traced back from its results to values that are left; and those
    values."""
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


def as_the_runtime_has_it(graph: Graph, provider: str, level: str = "extended") -> onnx.ModelProto:
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
