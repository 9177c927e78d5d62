"""A scheduling problem as a joint graph.

Invariant: vertices are the inputs and weights that ops read, the problem's values and, for an op of several values, the
op itself. Reading an input again costs its bytes; it is there in any case, and so never computed.
"""

from __future__ import annotations

from solvers.methods.mincut.joint import JointGraph, Vertex
from solvers.methods.mincut.tangents import tangents
from solvers.methods.mincut.traffic import FUSIBLE
from solvers.problem import Kind, Node, Problem


def joint_of(problem: Problem) -> tuple[JointGraph, list[int]]:
    """The joint graph, and the vertex of each value."""
    given = dict(pair for node in problem.nodes for pair in node.takes)
    vertices = [Vertex(bytes=size, reads=(), given=True) for size in given.values()]
    place = {number: vertex for vertex, number in enumerate(given)}
    vertex_of = [-1] * len(problem.sizes)
    follows = tangents(problem)
    for node, tangent in zip(problem.nodes, follows, strict=True):
        reads = (*(place[number] for number, _ in node.takes), *(vertex_of[value] for value in node.reads))
        size = sum(problem.sizes[value] for value in node.writes)
        op = len(vertices)
        vertices.append(_vertex(node, reads, size, tangent))
        if len(node.writes) == 1:
            vertex_of[node.writes[0]] = op
            continue
        for value in node.writes:
            vertex_of[value] = len(vertices)
            vertices.append(Vertex(problem.sizes[value], (op,), element=True, tangent=tangent, late=node.backward))
    return _joint(problem, vertices, vertex_of), vertex_of


def _joint(problem: Problem, vertices: list[Vertex], vertex_of: list[int]) -> JointGraph:
    writer = problem.writers()
    forward = [vertex_of[value] for value in problem.outputs if not problem.nodes[writer[value]].backward]
    read_back = {value for node in problem.nodes if node.backward for value in node.reads}
    forward += [vertex_of[value] for value in read_back if not problem.nodes[writer[value]].backward]
    backward = [vertex_of[value] for value in problem.outputs if problem.nodes[writer[value]].backward]
    outputs = {vertex_of[value] for value in problem.outputs}
    return JointGraph(vertices, sorted(set(forward)), sorted(set(backward)), outputs)


def _vertex(node: Node, reads: tuple[int, ...], size: int, tangent: bool) -> Vertex:
    return Vertex(
        bytes=size,
        reads=reads,
        tensor=len(node.writes) == 1,
        fusible=node.kind in FUSIBLE,
        epilogue=node.kind is Kind.EPILOGUE,
        concat=node.kind is Kind.CONCAT,
        view=node.kind is Kind.VIEW and bool(node.views),
        recomputable=(node.kind in FUSIBLE or node.kind is Kind.CONCAT) and not node.once,
        random=node.once,
        compute=node.kind in (Kind.COMPUTE, Kind.EPILOGUE),
        tangent=tangent,
        late=node.backward,
        arguments=reads,
    )
