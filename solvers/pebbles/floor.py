"""The least peak of a problem, and how it is reached: what each node reads brought into memory together, then the end.

Node by node in their order, so that what it takes to make a value of nothing is known when later ones ask. Searches
that were cut short are taken up again with more states, and count no peak below the bound that stands: it does not
matter any more.

Invariant: `bound` holds for every order, repeats and any order of first computes included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.bounds import PeakBound, peak_bound
from solvers.orders.halting import halting
from solvers.orders.polish import polish
from solvers.pebbles.copies import Copies, needed
from solvers.pebbles.making import Making
from solvers.pebbles.reach import NEVER, BackwardSearch, BackwardStep, Reached
from solvers.problem import Limits, Problem

NAME = "least peak"  # who found the orders
STATES = (200, 1_000, 5_000, 25_000, 125_000)  # of a search, from round to round
_IGNORED = 500  # the smallest values, of that part of the bound by ops together, are in no set at first
_LEFT_OUT = (30, 100, 250, 1000, 4000, 8000)  # then values of at most these parts of it are in none
_COARSEST = 1 / 8  # of the time, at most, for a proof with the large values alone
_FIRST, _EACH = 1 / 2, 1 / 4  # of the time left for the first search for orders too, and for each later one
_NEAR = 500  # what lies between the bound and the least peak known is halved until it is that part of the bound


class Floor:
    """One search. `known`: a peak that can be reached; above that no bound is sought. `orders`: if any are made."""

    def __init__(self, problem: Problem, known: int, limits: Limits, ignored: int = 0, orders: bool = True) -> None:
        self.problem = problem
        self.known = known
        self.orders = orders
        self.clock = limits.clock
        self.bound = peak_bound(problem)
        self.copies = Copies(problem, ignored)
        self.alone: Ints = np.full(len(self.copies.value), NEVER)  # the least peak known with which each is made
        self.least = [0] * len(problem.nodes)  # for each node: no order runs it at a lower peak
        self.ways: dict[int, tuple[BackwardStep, ...]] = {}  # node -> how what it reads gets into memory
        self.peaks = [NEVER] * len(problem.nodes)  # of those ways
        self.end: Reached | None = None
        once = sum(1 << index for index, node in enumerate(problem.nodes) if node.once)
        self.again = [not nodes & once for nodes in needed(problem, self.copies.writer)]  # whether it can be made anew

    @property
    def closed(self) -> bool:
        """Whether no order of a lower peak than known exists."""
        return self.bound.peak >= self.known

    def over(self) -> bool:
        return self.closed or self.clock.over()

    def run(self, best: Best) -> None:
        """Longer and longer; `best` is offered what is found. An order that fits ends the search, or that none can."""
        with halting(self.clock) as halt:
            for index in range(len(self.problem.nodes)):
                if not self.over():
                    self.reach(index, STATES[0], 0, halt)
            for states in STATES:
                met = self.go(states, best, halt)
                if self.over() or best.fitting is not None or self.bound.peak > best.budget >= 0:
                    return
                if met and not self.orders:
                    return  # these values alone ask for no more

    def go(self, states: int, best: Best, halt: Ints) -> bool:
        """Try for the budget, or else for the bound, and for ever less between that and what is known. Returns whether
        the first of these was met."""
        low, high, self.end = max(self.bound.peak, best.budget), self.known, None
        met = first = self.seek(low, states, halt) is not None
        while not met and not self.over() and high - low > self.bound.peak // _NEAR:
            aim = (low + high) // 2
            if self.seek(aim, states, halt) is None:
                low = aim
            else:
                high = aim
        if self.orders:
            self.order(self.end, best)
        return first

    def seek(self, aim: int, states: int, halt: Ints) -> Reached | None:
        """A way to the end at that peak, as far as so many states of each search show."""
        for index in range(len(self.problem.nodes)):
            if self.peaks[index] > max(aim, self.bound.peak) and not self.over():
                self.reach(index, states, aim, halt)
        if self.over():
            return None
        aim = max(aim, self.bound.peak)
        found = self.search(self.copies.outputs, states, aim, halt)
        if found.least > aim:
            self.raise_to(found.least, None)
        if found.peak is None:
            return None
        self.end = found
        return found

    def search(self, wanted: list[int], states: int, at_least: int, halt: Ints) -> Reached:
        left = self.clock.states()
        most = states if left is None else min(states, left)
        found = BackwardSearch(self.copies, self.alone, self.known, most, halt).run(wanted, at_least)
        self.clock.spend(states=found.states)
        return found

    def reach(self, index: int, states: int, aim: int, halt: Ints) -> None:
        """Bring what a node reads into memory; without an aim the least peak of that is wanted, for others' sake."""
        problem, copies, node = self.problem, self.copies, self.problem.nodes[index]
        at_least = max(aim, self.bound.peak)
        if not aim:
            at_least = max((self.least[copies.writer[read]] for read in node.reads), default=problem.resident)
        found = self.search(copies.reads(index), states, at_least, halt)
        beside = problem.resident + node.workspace + found.size
        taken = sum(problem.sizes[write] for write in copies.blocks.taken(node))
        least = max(self.least[index], beside + taken, found.least if found.least > aim else 0)
        self.least[index] = least
        self.raise_to(least, index)
        if found.peak is None or found.way is None or found.peak >= self.peaks[index]:
            return
        self.ways[index], self.peaks[index] = found.way, found.peak
        if self.again[index]:
            whole = max(found.peak, beside + sum(problem.sizes[write] for write in node.writes))
            writes = copies.writes(index)
            self.alone[writes] = np.minimum(self.alone[writes], whole)

    def order(self, end: Reached | None, best: Best) -> None:
        """By the ways found, within the budget if that can be, else at their peak."""
        if end is None or end.way is None or end.peak is None:
            return
        steps = Making(self.copies, self.ways, max(end.peak, best.budget)).run(end.way)
        found = None if steps is None else best.weigh(steps, NAME)
        if found is not None:
            best.offer_weighed(found)
            if best.fits(found):
                best.offer(polish(best.arrays, found.order, best.budget, self.clock.interrupts), NAME)
            self.known = min(self.known, found.peak)

    def raise_to(self, peak: int, index: int | None) -> None:
        peak = min(peak, self.known)
        if peak > self.bound.peak:
            node = self.problem.end() if index is None else self.problem.nodes[index]
            self.bound = PeakBound(peak, index, tuple(sorted({*node.reads, *self.copies.blocks.taken(node)})))


def dig(best: Best, known: int, limits: Limits) -> PeakBound:
    """The best bound found, up to `known`; `best` is offered orders of lower peak.

    A proof with the large values alone comes first. Then the smallest are left out, which is quicker and says nearly as
    much, and then more of them: sets of the others are far fewer, and a search through all of them says more than one
    through the whole that is cut short.
    """
    bound, clock = peak_bound(best.problem), limits.clock
    for ignored, share, orders in _turns(best.problem, bound.peak):
        part = replace(limits, clock=clock.share(share)) if ignored else limits
        floor = Floor(best.problem, known, part, ignored, orders)
        floor.bound = max(bound, floor.bound, key=lambda bound: bound.peak)
        floor.run(best)
        bound = floor.bound
        if bound.peak >= known or best.fitting is not None or bound.peak > best.budget >= 0 or clock.over():
            break
        if best.leanest is not None:
            known = min(known, best.leanest.peak)
    return bound


def _turns(problem: Problem, bound: int) -> Iterator[tuple[int, float, bool]]:
    """For each search the size up to which values are left out, its share of the time, and whether it makes orders."""
    *some, none = ignored_sizes(problem, bound)
    if some:
        yield max(some), _COARSEST, False
    for turn, size in enumerate(some):
        yield size, _EACH if turn else _FIRST, True
    yield none, 1.0, True


def ignored_sizes(problem: Problem, bound: int) -> list[int]:
    """Sizes up to which values are left out in turn, the last 0; each leaves others out than those before."""
    sizes, found = sorted(problem.sizes), dict[int, int]()
    for size in (_smallest(problem, bound // _IGNORED), *(bound // part for part in _LEFT_OUT)):
        found.setdefault(bisect_right(sizes, size), size)
    none = bisect_right(sizes, 0)
    return [*(size for left_out, size in found.items() if none < left_out < len(sizes)), 0]


def _smallest(problem: Problem, room: int) -> int:
    """The size of which all values up to it need no more room together."""
    largest = 0
    for size in sorted(problem.sizes):
        room -= size
        if room < 0:
            break
        largest = size
    return largest


def prove(problem: Problem, known: int, limits: Limits) -> PeakBound:
    """The best bound found; `known`: a peak that can be reached, above which no bound need be sought."""
    return dig(Best(problem, -1, limits.silent()), known, limits)
