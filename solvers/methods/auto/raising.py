"""The bound over all orders, and what becomes of the orders that its relaxations suggest.

Invariant: `asked.floor` only rises, and holds for every order that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from solvers.annealing.local import LocalSearch
from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.arrays import Ints
from solvers.problem import Limits, Progress
from solvers.updates import in_time

_BEGUN = 100  # moves that the first step takes, for each read of a node
_STEP = 4  # usual goes' work of a step, as of a lot of annealing; linear programs are not divided


class Raising(Operator):
    name, share = BoundSearch.NAME, 0.4

    def __init__(self, asked: SearchQuestion) -> None:
        self.ended = False
        self.local = LocalSearch(asked.problem, asked.budget, asked.limits.seed)
        super().__init__(asked, _BEGUN * sum(len(node.reads) for node in asked.problem.nodes))
        self.most = _STEP * asked.moves

    @cached_property
    def below(self) -> BoundSearch:
        """Bounds hold without updates too: for more orders then."""
        return BoundSearch(self.asked.as_asked, self.asked.budget)

    def ready(self) -> bool:
        return not self.ended

    def begin(self) -> Step:
        best, below, seconds, rounds = self.asked.best, self.below, self.below.seconds, self.below.rounds
        below.known = None if best.fitting is None else best.fitting.steps()
        enough = None if best.cost is None else best.cost / (1 + self.asked.limits.gap)

        def step(limits: Limits) -> list[Offer]:
            below.go(limits, enough)
            best.ledger.spent(self.name, below.seconds - seconds)
            if below.rounds == rounds or below.order is None:
                return []
            return [Offer(self._mended(in_time(self.asked.as_asked, below.order), limits), self.name)]

        return step

    def _mended(self, order: Sequence[int], limits: Limits) -> Ints:
        """What a go of annealing makes of an order that lies below the bound, or near it, and mostly does not fit."""
        moves = self.asked.moves
        found = self.local.go(np.array(order, np.int64), self.below.rounds, moves, limits.clock).order
        limits.clock.spend(moves=moves)
        return found

    def end(self, entries: Sequence[Contender | None]) -> None:
        asked, below = self.asked, self.below
        self.ended = below.done
        if asked.raise_floor(below.bound, self.name):
            asked.limits.report(Progress(asked.limits.clock.elapsed(), bound=asked.floor))
        asked.no_plan = asked.no_plan or below.infeasible
