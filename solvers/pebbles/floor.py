"""The least peak of a problem, and how it is reached: what each node reads brought into memory together, then the end.

Node by node in their order, so that what it takes to make a value of nothing is known when later ones ask. Searches
that were cut short are taken up again with more states, and count no peak below the bound that stands: it does not
matter any more.

Invariant: `bound` holds for every order, repeats and any order of first computes included.
"""

from __future__ import annotations

from solvers.orders.best import Best, Weighed
from solvers.orders.bounds import PeakBound, peak_bound
from solvers.pebbles.copies import Copies, bits
from solvers.pebbles.keeping import kept
from solvers.pebbles.making import Making
from solvers.pebbles.reach import NEVER, BackwardSearch, BackwardStep, Reached
from solvers.problem import Limits, Problem

_STATES = (200, 1_000, 5_000, 25_000)  # of a search, from round to round
_IGNORED = 10_000  # values of that part of the bound by ops are in no set at first


class Floor:
    """One search. `known`: a peak that can be reached; above that no bound is sought."""

    def __init__(self, problem: Problem, known: int, limits: Limits, ignored: int = 0) -> None:
        self.problem = problem
        self.known = known
        self.clock = limits.clock
        self.bound = peak_bound(problem)
        self.copies = copies = Copies(problem, ignored)
        self.alone = [NEVER] * (
            2 * copies.count
        )  # for each copy: the least peak known with which it is made of nothing
        self.least = [0] * len(problem.nodes)  # for each node: no order runs it at a lower peak
        self.ways: dict[int, tuple[BackwardStep, ...]] = {}  # node -> how what it reads gets into memory
        self.end: Reached | None = None

    @property
    def closed(self) -> bool:
        """Whether a way was found to the end that needs no more than the bound, or no better one than known exists."""
        return self.bound.peak >= self.known or (self.end is not None and self.end.peak is not None)

    def run(self) -> None:
        for states in _STATES:
            for index in range(len(self.problem.nodes)):
                if index not in self.ways and not self.over():
                    self.reach(index, states)
            if not self.over():
                self.end = self.search(self.copies.outputs(), states, self.bound.peak)
                self.raise_to(self.end.least, None)
            if self.over():
                return

    def over(self) -> bool:
        return self.closed or self.clock.over()

    def search(self, wanted: int, states: int, at_least: int) -> Reached:
        search = BackwardSearch(self.copies, self.alone, self.known, states, self.clock)
        found = search.run(wanted, at_least)
        self.clock.spend(iterations=search.seen.count)
        return found

    def reach(self, index: int, states: int) -> None:
        """Bring what a node reads into memory; at first the least peak of that itself is wanted, for others' sake."""
        copies, node = self.copies, self.problem.nodes[index]
        reads = copies.reads[index]
        at_least = self.bound.peak
        if states == _STATES[0]:
            at_least = max((self.least[copies.writer[read]] for read in node.reads), default=self.problem.resident)
        found = self.search(reads, states, at_least)
        size = copies.size(reads)
        self.least[index] = max(self.least[index], found.least, copies.need(index, size, 0))
        self.raise_to(self.least[index], index)
        if found.peak is None or found.way is None:
            return
        self.ways[index] = found.way
        whole = self.problem.resident + node.workspace + size + sum(self.problem.sizes[write] for write in node.writes)
        for bit in bits(copies.writes[index]):
            self.alone[bit] = min(self.alone[bit], max(found.peak, whole))

    def order(self, best: Best) -> Weighed | None:
        """By the ways found, within the budget if that can be, else at their peak."""
        if self.end is None or self.end.way is None or self.end.peak is None:
            return None
        steps = Making(self.copies, self.ways, max(self.end.peak, best.budget)).run(self.end.way)
        found = None if steps is None else best.weigh(steps)
        return found if found is None else best.offer(kept(self.copies, found, best).order)

    def raise_to(self, peak: int, index: int | None) -> None:
        peak = min(peak, self.known)
        if peak > self.bound.peak:
            node = self.problem.end() if index is None else self.problem.nodes[index]
            self.bound = PeakBound(peak, index, tuple(sorted({*node.reads, *self.copies.blocks.taken(node)})))


def dig(best: Best, known: int, limits: Limits) -> PeakBound:
    """The best bound found, up to `known`; `best` is offered orders of lower peak.

    The smallest values are left out at first, which is quicker and says nearly as much.
    """
    bound = peak_bound(best.problem)
    for ignored in (bound.peak // _IGNORED, 0):
        if bound.peak >= known or best.fitting is not None or limits.clock.over():
            break
        floor = Floor(best.problem, known, limits, ignored)
        floor.run()
        bound = max(bound, floor.bound, key=lambda bound: bound.peak)
        found = floor.order(best)
        known = known if found is None else min(known, found.peak)
    return bound


def prove(problem: Problem, known: int, limits: Limits) -> PeakBound:
    """The best bound found; `known`: a peak that can be reached, above which no bound need be sought."""
    return dig(Best(problem, -1, limits.silent()), known, limits)
