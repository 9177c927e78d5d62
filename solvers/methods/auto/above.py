"""Orders found with more room, then mended to fit: where recomputation is dear, they lead further than orders that fit.

Near the least memory the search seldom gets from one order that fits to another: much has to change at once. With a
little more room it moves freely, and what is over the budget in the end stands at few places. Where nothing gets down
in one step, many small ones do, each from where the last one led.

Invariant: what is yielded needs no more than the search with more room left, and may still not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.methods.auto.local import LocalSearch
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.evict import RULES, Evictor
from solvers.orders.measure import memory_of
from solvers.pebbles.copies import Copies
from solvers.pebbles.mending import Mending
from solvers.problem import Problem

_PARTS = (1.05, 1.08, 1.03)  # of the budget
_LADDER = (1.6, 1.45, 1.3, 1.2, 1.15, 1.1, 1.05, 1.0)
_TURNS = 3  # goes at one step of it, at most, mended between them
_STATE_MOVES = 10  # moves of a go for each state of the search that mends what it comes to


@dataclass(slots=True)
class FromAbove:
    """`moves`: of a go; `walks`: tried as its start. `best` is told of nothing."""

    problem: Problem
    best: Best
    copies: Copies
    moves: int
    walks: int

    def orders(self) -> Iterator[Ints]:
        """An order from each larger budget, mended."""
        for number, part in enumerate(_PARTS):
            if self.best.over():
                return
            budget = int(self.best.budget * part)
            order = self.go(self.walk(budget), number, budget)
            yield self.mend(order, self.best.budget)

    def descend(self) -> Ints:
        """Down to the budget, each step from where the last one led, and mended; it ends at a step that cannot be
        reached."""
        order = self.walk(int(self.best.budget * _LADDER[0]))
        for number, part in enumerate(_LADDER):
            budget = int(self.best.budget * part)
            order = self.reach(order, 2 * number, budget)
            if self.peak(order) > budget:
                break
        return self.mend(order, self.best.budget)

    def reach(self, order: Ints, number: int, budget: int) -> Ints:
        for turn in range(_TURNS):
            if turn:
                order = self.mend(order, budget)
            order = self.go(order, number + turn, budget)
            if self.peak(order) <= budget or self.best.over():
                break
        return order

    def walk(self, budget: int) -> Ints:
        """The best of some eviction walks."""
        larger = Best(self.problem, budget, self.best.limits.silent())
        evictor = Evictor(self.problem, larger.limits.clock)
        for rule in RULES[: self.walks]:
            larger.offer(evictor.run(budget, rule, larger.limits.seed), "walks")
        found = larger.fitting or larger.leanest
        return np.arange(len(self.problem.nodes)) if found is None else found.order

    def go(self, order: Ints, number: int, budget: int) -> Ints:
        limits = self.best.limits
        found = LocalSearch(self.problem, budget, limits.seed).go(order, number, self.moves, limits.clock).order
        limits.clock.spend(self.moves)
        return found

    def mend(self, order: Ints, budget: int) -> Ints:
        within = Best(self.problem, budget, self.best.limits.silent())
        return Mending(self.copies, within, self.moves // _STATE_MOVES).run(order)

    def peak(self, order: Ints) -> int:
        return int(memory_of(self.best.arrays, order).max())
