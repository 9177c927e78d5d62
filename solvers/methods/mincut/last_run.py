"""What is surely in memory at the last run of the ops that need most: all that the rest is made from.

Whichever of a set of nodes runs last, none of them runs after it. So each output is there by then, or it is made from
what is there by nodes outside the set. The least that must be held for that is a minimum cut between the outputs and
what only the set makes.

Invariant: the bound holds for every order, repeats and any order of first computes included.
"""

from __future__ import annotations

from collections.abc import Collection

from solvers.clock import Clock
from solvers.methods.mincut.flow import INFINITE, minimum_cut
from solvers.orders.bounds import list_needs
from solvers.problem import Problem

_SETS = 16  # sets of nodes that are tried, those with the greatest needs first
_ARCS = 20  # moves that take about as long as an arc of a network


def last_run_bound(problem: Problem, clock: Clock) -> int:
    """The greatest bound over sets of the nodes that need most. 0 where memory may be shared in other ways than this
    knows."""
    if problem.inner or any(node.views or node.updates for node in problem.nodes):
        return 0
    needs = list_needs(problem)
    network = _Network(problem)
    best = 0
    for least in sorted(set(needs), reverse=True)[:_SETS]:
        those = [index for index, need in enumerate(needs) if need >= least]
        bound: int | None = None
        for last in sorted(those, key=needs.__getitem__):
            if clock.over():
                return best
            clock.spend(moves=_ARCS * network.arcs)
            found = needs[last] + network.held_at(last, those)
            bound = found if bound is None else min(bound, found)
            if bound <= best:
                break
        best = max(best, bound or 0)
    return best


class _Network:
    """From the outputs to what they are made from: each value is two vertices, with an arc between them for its
    bytes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.writer = problem.writers()
        self.source, self.sink = 2 * len(problem.sizes), 2 * len(problem.sizes) + 1
        self.arcs = sum(1 + len(problem.nodes[maker].reads) for maker in self.writer if maker >= 0)

    def held_at(self, last: int, those: Collection[int]) -> int:
        """The bytes that are held while node `last` runs, beside what it reads and writes, if none of `those` runs
        later."""
        problem = self.problem
        here = {*problem.nodes[last].reads, *problem.nodes[last].writes}
        before = problem.makers(problem.nodes[last].reads, (), self.writer)
        over = {*those, *(index for index in before if problem.nodes[index].once)}
        arcs = [(self.source, 2 * value, INFINITE) for value in set(problem.outputs)]
        for value, maker in enumerate(self.writer):
            if maker < 0:
                continue
            arcs.append((2 * value, 2 * value + 1, 0 if value in here else problem.sizes[value]))
            ends = (self.sink,) if maker in over else (2 * read for read in problem.nodes[maker].reads)
            arcs += [(2 * value + 1, end, INFINITE) for end in ends]
        return minimum_cut(self.sink + 1, arcs, self.source, self.sink).value
