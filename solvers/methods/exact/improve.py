"""The upper side of the search: eviction walks and annealing.

Invariant: where a turn leads is the same on every machine, so long as time does not run out; what it costs is counted
in tries of annealing, and never in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.evict import RULES, Evictor, Hints, Rule, some_rules

MOVES = 12_000  # of a go of annealing
_MENDING = 3  # goes from the order of a relaxation's answer, and goes without success before polishing ends
_WALKED, _GUIDED = 200_000, 18_000  # nodes that plain walks go through, and guided ones for each strength of hints
_FEWEST = 8  # rules tried on any graph
WORK = 100  # iterations of SCIP's simplex method that take as long as one go of annealing
_NO_PLAN = 1 << 62  # a cost higher than any
ANNEALING = "annealing in order"


@dataclass(frozen=True, slots=True)
class Turn:
    """The state of a series of tries. `spent`: how many of them count as work."""

    order: Ints | None
    tries: int = 0
    spent: int = 0


class Improver:
    """Offers orders to the best known one until `done`."""

    def __init__(self, best: Best, done: Callable[[], bool]) -> None:
        self.budget = best.budget
        self.limits = best.limits
        self.best = best
        self.done = done
        self.count = len(best.problem.nodes)
        self.evictor = Evictor(best.problem)
        self.rules = some_rules(self.count, _GUIDED, _FEWEST)
        self.local = LocalSearch(best.problem, best.budget, best.limits.seed)
        self.turn = Turn(None)

    def walk_plainly(self) -> None:
        """Walk by all rules, or by some of them on very large graphs. Later walks use those that do best here."""
        found: list[tuple[int, int]] = []
        for place, rule in enumerate(some_rules(self.count, _WALKED, _FEWEST)):
            if self.done():
                return
            order = self._walk(rule)
            weighed = self.best.offer(order, "walks")
            cost = weighed.cost if weighed is not None and self.best.fits(weighed) else _NO_PLAN
            found.append((cost, place))
        self.rules = tuple(RULES[place] for _, place in sorted(found)[: len(self.rules)])

    def walk_with(self, hints: Hints) -> None:
        for strength, rule in product((1e4, 30.0, 3.0), self.rules):
            if self.done():
                return
            order = self._walk(replace(rule, hint=strength), hints)
            self.best.offer(order, "guided walks")

    def _walk(self, rule: Rule, hints: Hints | None = None) -> Ints:
        return self.evictor.run(self.budget, rule, self.limits.seed, hints, self.limits.clock)

    def mend(self, order: Ints) -> None:
        """Anneal from the order of the relaxation's answer, which may not quite fit."""
        for _ in range(_MENDING):
            if self.done():
                return
            self.turn = replace(self.turn, tries=self.turn.tries + 1)
            self.best.offer(self._anneal(order, self.turn.tries), ANNEALING)

    def polish(self, patience: int = _MENDING) -> None:
        """Anneal until so many goes in a row have found nothing."""
        idle = 0
        while idle < patience and not self.done():
            before = self.best.cost
            self.adopt(self.attempt(replace(self.turn, order=None)))
            idle = idle + 1 if self.best.cost == before else 0

    def adopt(self, turn: Turn) -> None:
        self.turn = turn
        if turn.order is not None:
            self.best.offer(turn.order, ANNEALING)

    def attempt(self, turn: Turn) -> Turn:
        """One go, from the turn's order or otherwise from the best known."""
        order = turn.order
        if order is None:
            known = self.best.fitting or self.best.leanest
            if known is None:
                return turn
            order = known.order
        found = self._anneal(order, turn.tries + 1)
        return Turn(found, turn.tries + 1, turn.spent + 1)

    def _anneal(self, order: Ints, number: int) -> Ints:
        return self.local.go(order, number, MOVES, self.limits.clock, Kept.ORDER).order
