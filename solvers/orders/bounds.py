"""What no schedule can get below.

A peak is bounded by what each node needs for itself, and then by a search backwards over what must be in memory
together. Whatever set of values is to be in memory at once, one of them was produced last: while it was, the others
were held, with all that its node reads and writes; before that, the others and what the node reads had to be in memory
at once in their turn. So a set's least peak is the cheapest of these chains, in the sense of their largest member, down
to the empty set; cut short anywhere, the least on the search's frontier is still a bound.

Invariant: every bound holds for every order, repeats and any order of first computes included; in-place writes and
writes left out are counted as if they were always possible.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from solvers.problem import Limits, Node, Problem

_STATES = 20_000  # of one backward search


@dataclass(frozen=True, slots=True)
class PeakBound:
    """`values` are what node `node` reads and writes; at the end, the outputs."""

    peak: int
    node: int | None
    values: tuple[int, ...]


def cost_bound(problem: Problem) -> int:
    """Every node runs at least once."""
    return sum(node.cost for node in problem.nodes)


def peak_bound(problem: Problem) -> PeakBound:
    """The op that needs most for itself, or the outputs together."""
    return max((_bound(problem, index, node, 0) for index, node in _moments(problem)), key=lambda bound: bound.peak)


def prove(problem: Problem, known: int, limits: Limits) -> PeakBound:
    """The best bound found; `known`: a peak that can be reached, above which no bound need be sought."""
    best = peak_bound(problem)
    for index, node in sorted(_moments(problem), key=lambda moment: -_alone(problem, moment[1])):
        if best.peak >= known or limits.clock.over():
            break
        found = _bound(problem, index, node, _backwards(problem, frozenset(node.reads), known))
        best = max(best, found, key=lambda bound: bound.peak)
    return best


def _moments(problem: Problem) -> list[tuple[int | None, Node]]:
    """Every node, and the end, at which the outputs are there as if a node read them."""
    return [(None, problem.end()), *enumerate(problem.nodes)]


def _bound(problem: Problem, index: int | None, node: Node, peak: int) -> PeakBound:
    return PeakBound(max(peak, _alone(problem, node)), index, tuple(sorted({*node.reads, *_own(problem, node)})))


def _alone(problem: Problem, node: Node) -> int:
    """What a node needs for itself at the very least."""
    return (
        problem.resident + node.workspace + sum(problem.sizes[value] for value in {*node.reads, *_own(problem, node)})
    )


def _own(problem: Problem, node: Node) -> list[int]:
    shared = node.sharing()
    return [write for write in node.writes if write not in shared and write not in problem.optional]


def _backwards(problem: Problem, wanted: frozenset[int], known: int) -> int:
    """A bound on the peak of any order that brings these values into memory together, or `known` if that is less."""
    writer = problem.writers()
    heap: list[tuple[int, int, int, frozenset[int]]] = [(0, 0, 0, wanted)]
    least = {wanted: 0}
    pushed = 0
    while heap:
        peak, _, _, values = heapq.heappop(heap)
        if not values or peak >= known or pushed > _STATES:
            return min(peak, known)
        if peak > least[values]:
            continue
        for index in {writer[value] for value in values}:
            node = problem.nodes[index]
            before = values.difference(node.writes).union(node.reads)
            during = before.union(_own(problem, node), (v for v in node.writes if v in values and not _shares(node, v)))
            needs = problem.resident + node.workspace + sum(problem.sizes[value] for value in during)
            reached = max(peak, needs)
            if reached < least.get(before, known):
                least[before] = reached
                pushed += 1
                heapq.heappush(heap, (reached, -index, pushed, before))
    return known


def _shares(node: Node, value: int) -> bool:
    return value in node.sharing()
