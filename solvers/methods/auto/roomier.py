"""Orders found with more room, then mended to fit: where recomputation is dear, they lead further than orders that fit.

Near the least memory the search seldom gets from one order that fits to another: much has to change at once. With a
little more room it moves freely, and what is over the budget in the end stands at few places. Where nothing gets down
in one step, many small ones do, each from where the last one led. And what is asked of a step may be asked of two
passes: the outputs that are made first, and then the others.

Invariant: an order is made with the same work whatever else is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from solvers.annealing.local import LocalSearch
from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.evict import RULES, Evictor
from solvers.pebbles.mending import Mending
from solvers.problem import Limits
from solvers.reductions.passes import Pass, in_two_passes

DEAR = 1.1  # times the cost of everything once, from where on it is worth its time
_PARTS = (1.05, 1.08, 1.03)  # of the budget
_LADDER = (1.6, 1.45, 1.3, 1.2, 1.15, 1.1, 1.05, 1.0)
_PUT_OFF = (0.9, 0.5)  # of the bytes of outputs: those made first, left to a second pass
_RULES = 9
_PASS = 16  # usual goes for each pass

Solve = Callable[[Pass, int, Limits], tuple[int, ...]]


class Roomier(Operator):
    """`solve`: the best order of a pass."""

    name, share = "larger budgets", 0.1

    def __init__(self, asked: SearchQuestion, solve: Solve) -> None:
        super().__init__(asked, 3 * asked.moves)
        self.solve = solve
        self.limits = asked.aside()
        self.best = Best(asked.as_asked, asked.budget, self.limits)
        self.orders = self._orders()
        self.over = False

    def ready(self) -> bool:
        return not self.over and self.asked.dearer(DEAR)

    def begin(self) -> Step:
        def step(limits: Limits) -> list[Offer]:
            before = self.limits.clock.work.spent
            order = next(self.orders, None)
            limits.clock.spend(moves=self.limits.clock.work.spent - before)
            self.over = order is None
            return [] if order is None else [Offer(order, self.name)]

        return step

    def _orders(self) -> Iterator[Ints]:
        for number, part in enumerate(_PARTS):
            budget = int(self.best.budget * part)
            order = self.go(self.walk(budget), number, budget)
            yield self.go(self.mend(order, self.best.budget), number, self.best.budget)
            if number == 0:
                yield from self._in_passes()
                yield self.descend()

    def _in_passes(self) -> Iterator[Ints]:
        for put_off in _PUT_OFF:
            passes = in_two_passes(self.asked.problem, put_off)
            if passes is not None:
                limits = self.asked.aside(_PASS * self.asked.moves)
                yield np.array(
                    [step for one in passes for step in self.solve(one, self.asked.budget, limits)], np.int64
                )

    def descend(self) -> Ints:
        """Down to the budget, each step from where the last one led, and mended."""
        order = self.walk(int(self.best.budget * _LADDER[0]))
        for number, part in enumerate(_LADDER):
            budget = int(self.best.budget * part)
            order = self.mend(self.go(order, number, budget), budget)
        return order

    def walk(self, budget: int) -> Ints:
        """The best of some eviction walks."""
        larger = Best(self.asked.problem, budget, self.limits)
        evictor = Evictor(self.asked.problem, self.limits.clock)
        for rule in RULES[:_RULES]:
            larger.offer(evictor.run(budget, rule, self.limits.seed), self.name)
        found = larger.fitting or larger.leanest
        return np.array(self.asked.given, np.int64) if found is None else found.order

    def go(self, order: Ints, number: int, budget: int) -> Ints:
        local = LocalSearch(self.asked.problem, budget, self.limits.seed)
        self.limits.clock.spend(moves=self.asked.moves)
        return local.go(order, number, self.asked.moves, self.limits.clock).order

    def mend(self, order: Ints, budget: int) -> Ints:
        within = Best(self.asked.as_asked, budget, self.limits)
        return Mending(self.asked.copies, within, self.asked.moves).run(order)
