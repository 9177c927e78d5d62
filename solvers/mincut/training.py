"""A scheduling problem as a joint graph, and a set of saved values as an order of computes.

Invariant: vertices are the problem's values and, for an op of several values, the op itself; forward and backward are
as the problem's nodes say.
"""

from __future__ import annotations

from collections.abc import Collection

from solvers.mincut.joint import Joint, Vertex
from solvers.problem import Kind, Node, Problem

FUSIBLE = {Kind.POINTWISE, Kind.REDUCTION, Kind.VIEW}


def joint_of(problem: Problem) -> tuple[Joint, list[int]]:
    """The joint graph, and the vertex of each value."""
    vertices: list[Vertex] = []
    vertex_of = [-1] * len(problem.sizes)
    for node in problem.nodes:
        reads = tuple(vertex_of[value] for value in node.reads)
        if len(node.writes) == 1:
            vertex_of[node.writes[0]] = len(vertices)
            vertices.append(_vertex(problem, node, reads, problem.sizes[node.writes[0]], True))
            continue
        op = len(vertices)
        vertices.append(_vertex(problem, node, reads, 0, False))
        for value in node.writes:
            vertex_of[value] = len(vertices)
            vertices.append(Vertex(problem.sizes[value], (op,), element=True, tangent=node.backward))
    writer = problem.writers()
    forward = [vertex_of[value] for value in problem.outputs if not problem.nodes[writer[value]].backward]
    read_back = {value for node in problem.nodes if node.backward for value in node.reads}
    forward += [vertex_of[value] for value in read_back if not problem.nodes[writer[value]].backward]
    backward = [vertex_of[value] for value in problem.outputs if problem.nodes[writer[value]].backward]
    outputs = {vertex_of[value] for value in problem.outputs}
    return Joint(vertices, sorted(set(forward)), sorted(set(backward)), outputs), vertex_of


def _vertex(problem: Problem, node: Node, reads: tuple[int, ...], size: int, tensor: bool) -> Vertex:
    return Vertex(
        bytes=size,
        reads=reads,
        tensor=tensor,
        fusible=node.kind in FUSIBLE,
        concat=node.kind is Kind.CONCAT,
        view=node.kind is Kind.VIEW and bool(node.views),
        recomputable=node.kind is not Kind.COMPUTE and not node.once,
        random=node.once,
        compute=node.kind is Kind.COMPUTE,
        tangent=node.backward,
        arguments=reads,
    )


def order_of(problem: Problem, saved: Collection[int]) -> tuple[int, ...]:
    """Forward as it is; then each backward op, after what it reads and nobody saved is computed again.

    A value rebuilt stays until its last use, as in PyTorch's backward graph. A node that may run only once, and an
    output, counts as saved whatever `saved` says.
    """
    writer = problem.writers()
    there = set(saved).union(problem.outputs)
    there.update(value for node in problem.nodes if node.once for value in node.writes)
    order: list[int] = []
    in_backward = False
    for index, node in enumerate(problem.nodes):
        if node.backward and not in_backward:
            in_backward = True
        if in_backward:
            order += _missing(problem, writer, node.reads, there)
            there.update(node.writes)
        order.append(index)
    return tuple(order)


def _missing(problem: Problem, writer: list[int], reads: tuple[int, ...], there: set[int]) -> list[int]:
    """What must run before `reads` are there, in the problem's order; marks it as there."""
    wanted: set[int] = set()
    waiting = [value for value in reads if value not in there]
    while waiting:
        index = writer[waiting.pop()]
        if index not in wanted:
            wanted.add(index)
            waiting += [value for value in problem.nodes[index].reads if value not in there]
    for index in wanted:
        there.update(problem.nodes[index].writes)
    return sorted(wanted)
