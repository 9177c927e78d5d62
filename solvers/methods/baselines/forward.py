"""The forward graph of a training step: its ops, and the ops that alone connect its parts.

Invariant: only forward ops count. In a problem that marks no op as backward, all ops count.
"""

from __future__ import annotations

from solvers.problem import Problem


def forward_nodes(problem: Problem) -> list[int]:
    """The forward ops in order; all ops where none is marked as backward."""
    found = [index for index, node in enumerate(problem.nodes) if not node.backward]
    return found or list(range(len(problem.nodes)))


def forward_edges(problem: Problem) -> list[tuple[int, int]]:
    """(i, j) where forward op j reads what forward op i writes."""
    writer = problem.writers()
    inside = set(forward_nodes(problem))
    return [
        (source, index)
        for index in sorted(inside)
        for source in sorted({writer[value] for value in problem.nodes[index].reads})
        if source in inside
    ]


def node_bytes(problem: Problem, index: int) -> int:
    return sum(problem.sizes[value] for value in problem.nodes[index].writes)


def articulation_points(problem: Problem) -> list[int]:
    """The ops without which the undirected forward graph falls apart, in order.

    As in Checkmate's section 5.1.1, and with its source before the first op and sink after the last, so that all ops
    of a chain count. Hopcroft and Tarjan's depth-first search without recursion: O(V + E).
    """
    nodes = forward_nodes(problem)
    source, sink = -1, len(problem.nodes)
    neighbours: dict[int, list[int]] = {node: [] for node in (source, *nodes, sink)}
    for a, b in ((source, nodes[0]), *forward_edges(problem), (nodes[-1], sink)):
        neighbours[a].append(b)
        neighbours[b].append(a)
    found: set[int] = set()
    seen: dict[int, int] = {}
    for root in neighbours:
        if root not in seen:
            found |= _points_of_component(neighbours, root, seen)
    return sorted(found - {source, sink})


def _points_of_component(neighbours: dict[int, list[int]], root: int, seen: dict[int, int]) -> set[int]:
    """`seen` gives each node its number in depth-first order; `low` the least number reachable around its parent."""
    found: set[int] = set()
    seen[root] = len(seen)
    low = {root: seen[root]}
    stack = [(root, root, iter(neighbours[root]))]
    branches = 0
    while stack:
        node, parent, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            stack.pop()
            if not stack:
                continue
            low[parent] = min(low[parent], low[node])
            if parent == root:
                branches += 1
            elif low[node] >= seen[parent]:
                found.add(parent)
        elif following not in seen:
            seen[following] = low[following] = len(seen)
            stack.append((following, node, iter(neighbours[following])))
        elif following != parent:
            low[node] = min(low[node], seen[following])
    if branches > 1:
        found.add(root)
    return found
