"""The links of a forward chain: the papers' layers, where a layer is several ops and the loss has labels to look at.

A chain hands one value from layer to layer. Within a layer there may be small ones beside it (the mean and variance
of a normalization), and beside the chain a branch that carries little (labels on their way to the loss); neither makes
a chain of layers less of one. Where ops of comparable results run side by side it is none.

Invariant: links are consecutive forward ops, and the last op of a link, its main one, writes what goes on.
"""

from __future__ import annotations

from solvers.methods.baselines.forward import forward_edges, forward_nodes, node_bytes
from solvers.problem import Problem

SMALL = 8  # a value is beside the chain if it is this many times smaller than what the chain hands on there


def links(problem: Problem) -> list[list[int]] | None:
    """The chain's links in order; None if the forward graph is no chain."""
    nodes = forward_nodes(problem)
    beside = _beside(problem, nodes)
    if beside is None:
        return None
    mains = _mains(problem, nodes, beside)
    if mains is None:
        return None
    found: list[list[int]] = [[]]
    for index in nodes:
        found[-1].append(index)
        if index in mains:
            found.append([])
    rest = found.pop()
    if rest and found:
        found[-1] += rest
    return found or None


def _beside(problem: Problem, nodes: list[int]) -> set[int] | None:
    """Ops that do not depend on the chain; None if their results are not small."""
    readers: dict[int, list[int]] = {index: [] for index in nodes}
    for source, index in forward_edges(problem):
        readers[source].append(index)
    reached: dict[int, set[int]] = {}
    for index in reversed(nodes):
        reached[index] = {index}.union(*(reached[reader] for reader in readers[index]))
    start = max(nodes, key=lambda index: (len(reached[index]), -index))
    beside = set(nodes) - reached[start]
    largest = max(node_bytes(problem, index) for index in nodes)
    return beside if all(node_bytes(problem, index) * SMALL <= largest for index in beside) else None


def _mains(problem: Problem, nodes: list[int], beside: set[int]) -> set[int] | None:
    """The ops that write what crosses each gap between ops; None where two values of one size cross a gap."""
    place = {index: at for at, index in enumerate(nodes)}
    readers = problem.readers()
    last: dict[int, int] = {}  # value -> the last index that reads it
    for index in nodes:
        for value in problem.nodes[index].writes:
            last[value] = max((place[reader] for reader in readers[value] if reader in place), default=-1)
    crossing: dict[int, int] = {}  # crossing value -> the op that writes it
    mains = {nodes[-1]}
    for at, index in enumerate(nodes[:-1]):
        if index not in beside:
            crossing.update(dict.fromkeys(problem.nodes[index].writes, index))
        crossing = {value: op for value, op in crossing.items() if last[value] > at}
        large = sorted(crossing, key=lambda value: problem.sizes[value])[-2:]
        if len(large) == 2 and problem.sizes[large[0]] * SMALL > problem.sizes[large[1]]:
            return None
        if large:
            mains.add(crossing[large[-1]])
    return mains
