"""The upper side of the search: eviction walks, annealing, and programs over windows.

Invariant: where a turn leads is the same on every machine, so long as time does not run out; what a try of annealing or
of a window costs is counted in `spent`, in tries of annealing, and never in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import numpy as np

from solvers import scip
from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.methods.exact import window
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.evict import RULES, Evictor, Hints, Rule, some_rules
from solvers.orders.measure import memory_of
from solvers.problem import Problem

MOVES = 12_000  # of a go of annealing
_MENDING = 3  # goes from the order of a relaxation's answer, and goes without success before polishing ends
_WALKED, _GUIDED = 200_000, 18_000  # nodes that plain walks go through, and guided ones for each strength of hints
_FEWEST = 8  # rules tried on any graph
WORK = 100  # iterations of SCIP's simplex method that take as long as one go of annealing
_WIDE = 4000  # columns of a window's program
_NO_PLAN = 1 << 62  # a cost higher than any
_TREE = 20  # nodes of the search tree for a window
ANNEALING = "annealing in order"
_LEAST, _MOST = 6, 400  # the fewest and the most nodes in a window


@dataclass(frozen=True, slots=True)
class Turn:
    """The state of a series of tries."""

    order: Ints | None
    tries: int = 0
    spent: int = 0
    waits: int = 20  # tries of annealing before the next window
    reach: int = 24  # nodes in a window
    by: str = ""  # what the last try was


class Improver:
    """Offers orders to the best known one until `done`."""

    def __init__(
        self,
        best: Best,
        ended: Problem,
        scale: float,
        done: Callable[[], bool],
    ) -> None:
        """`ended`: the problem with a last node that reads the outputs; costs in programs are divided by `scale`."""
        self.problem = ended
        self.budget = best.budget
        self.limits = best.limits
        self.best = best
        self.scale = scale
        self.done = done
        self.evictor = Evictor(best.problem)
        self.rules = some_rules(len(best.problem.nodes), _GUIDED, _FEWEST)
        self.local = LocalSearch(best.problem, best.budget, best.limits.seed)
        self.disputed: list[int] = []  # nodes that the relaxation treats differently from the best order
        self.turn = Turn(None)

    def walk_plainly(self) -> None:
        """Walk by all rules, or by some of them on very large graphs. Later walks use those that do best here."""
        found: list[tuple[int, int]] = []
        for place, rule in enumerate(some_rules(len(self.problem.nodes), _WALKED, _FEWEST)):
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
            self.best.offer(turn.order, turn.by)

    def attempt(self, turn: Turn, stopped: Callable[[], bool] | None = None) -> Turn:
        """One go, from the turn's order or otherwise from the best known; its result must not be used if `stopped` came
        true."""
        order = turn.order
        if order is None:
            known = self.best.fitting or self.best.leanest
            if known is None:
                return turn
            order = known.order
        turn = replace(turn, tries=turn.tries + 1, by="windows")
        if turn.waits <= 0 and self.best.order is not None:
            return self._window(order, turn, stopped or self.done)
        order = self._anneal(order, turn.tries)
        return replace(turn, order=order, spent=turn.spent + 1, waits=turn.waits - 1, by=ANNEALING)

    def _anneal(self, order: Ints, number: int) -> Ints:
        return self.local.go(order, number, MOVES, self.limits.clock, Kept.ORDER).order

    def _window(self, order: Ints, turn: Turn, stopped: Callable[[], bool]) -> Turn:
        """Solve the program of one window. The number of its nodes is adapted, so that a program takes a second or
        so."""
        ended = np.append(order, len(self.problem.nodes) - 1)
        memory = memory_of(self.evictor.arrays, ended)
        if len(memory) < len(ended) or memory.max() > self.budget:
            return replace(turn, order=order, spent=turn.spent + 1, waits=1)
        random = Random(self.limits.seed * 1000 + turn.tries)
        program = window.build(
            self.problem, ended.tolist(), memory.tolist(), self.budget, self._chosen(random, turn), self.scale
        )
        columns = len(program.start)
        if columns > _WIDE:
            return replace(turn, order=order, spent=turn.spent + 1, reach=max(_LEAST, turn.reach * 3 // 4))
        clock = self.limits.clock.timed().unless(stopped)  # a turn that is not adopted does not count
        settings = scip.Settings(clock, seed=self.limits.seed, nodes=_TREE)
        answer = scip.solve(program.program, settings, [program.start])
        worth = 1 + answer.work // WORK
        reach = min(_MOST, turn.reach * 5 // 4 + 1) if answer.nodes < _TREE else max(_LEAST, turn.reach * 3 // 4)
        found = order if answer.values is None else np.array(program.order(answer.values), dtype=np.int64)
        return replace(turn, order=found, spent=turn.spent + worth, waits=worth, reach=reach)

    def _chosen(self, random: Random, turn: Turn) -> frozenset[int]:
        if self.disputed and turn.tries % 2:
            return frozenset(random.sample(self.disputed, min(len(self.disputed), turn.reach)))
        return window.neighbours(self.problem, random, turn.reach)
