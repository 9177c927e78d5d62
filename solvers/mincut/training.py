"""A scheduling problem as a joint graph.

Invariant: vertices are the problem's values and, for an op of several values, the op itself; forward and backward are
as the problem's nodes say.
"""

from __future__ import annotations

from solvers.mincut.joint import Joint, Vertex
from solvers.mincut.traffic import FUSIBLE
from solvers.problem import Kind, Node, Problem


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
        vertices.append(_vertex(problem, node, reads, sum(problem.sizes[value] for value in node.writes), False))
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
        recomputable=(node.kind in FUSIBLE or node.kind is Kind.CONCAT) and not node.once,
        random=node.once,
        compute=node.kind is Kind.COMPUTE,
        tangent=node.backward,
        arguments=reads,
    )
