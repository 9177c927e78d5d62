"""The upper side of the search: eviction walks, annealing, and programs over windows.

Invariant: where a stand leads is the same on every machine, so long as time does not run out; what a go of annealing or
of a window costs is counted in `spent`, in goes of annealing, and never in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import numpy as np

from solvers import scip
from solvers.exact import window
from solvers.exact.anneal import anneal, start
from solvers.exact.tables import EXCESS, KEYS, MEMORY, TOTAL, order_of, pack
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.evict import TASTES, Evictor, Hints, Taste
from solvers.orders.measure import memory_of
from solvers.problem import Limits, Problem

_MOVES = 10_000_000  # of annealing in one go, times nodes
_HEATS = (3e-3, 1e-3, 3e-4)  # of the cost
_LARGE = 500  # nodes: a walk takes longer than some milliseconds
_VERY_LARGE = 4000  # nodes: a walk takes a good part of a second
_FEWEST = 6  # tastes tried on any graph
WORK = 100  # iterations of SCIP's simplex method that one go of annealing is worth
_WIDE = 4000  # columns of a window
_NO_PLAN = 1 << 62  # dearer than any
_TREE = 20  # nodes of a window's search tree
_LEAST, _MOST = 6, 400  # nodes in a window


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a series of goes has come to."""

    order: Ints | None
    goes: int = 0
    spent: int = 0
    owed: int = 20  # goes of annealing before the next window
    reach: int = 24  # nodes in a window


class Improver:
    """Makes offers to an incumbent until `done`."""

    def __init__(
        self,
        problem: Problem,
        ended: Problem,
        budget: int,
        limits: Limits,
        best: Best,
        scale: float,
        done: Callable[[], bool],
    ) -> None:
        self.problem = ended  # with a last node that reads the outputs
        self.budget = budget
        self.limits = limits
        self.best = best
        self.scale = scale
        self.done = done
        self.evictor = Evictor(problem, limits.clock)
        self.tastes: list[Taste] = list(TASTES)
        self.tables: Ints | None = None
        self.total = sum(node.cost for node in ended.nodes)
        self.disputed: list[int] = []  # nodes of which the relaxation thinks otherwise than the best order
        self.stand = Stand(None)

    def walk_plainly(self) -> None:
        """All tastes, on very large graphs some; on large ones, after this only those that do best here."""
        found: list[tuple[int, int]] = []
        every = min(len(TASTES) // _FEWEST, 1 + len(self.problem.nodes) // _VERY_LARGE)
        for place, taste in list(enumerate(TASTES))[::every]:
            if self.done():
                return
            order = self.evictor.run(self.budget, taste, self.limits.seed)
            weighed = self.best.offer(order)
            cost = weighed.cost if weighed is not None and self.best.fits(weighed) else _NO_PLAN
            found.append((cost, place))
        if len(self.problem.nodes) > _LARGE:
            self.tastes = [TASTES[place] for _, place in sorted(found)[:8]]

    def walk_with(self, hints: Hints) -> None:
        for strength, taste in product((1e4, 30.0, 3.0), self.tastes):
            if self.done():
                return
            self.best.offer(self.evictor.run(self.budget, replace(taste, hint=strength), self.limits.seed, hints))

    def mend(self, order: Ints) -> None:
        """Anneal from the relaxation's answer, which may not quite fit."""
        for _ in _HEATS:
            if self.done():
                return
            self.stand = replace(self.stand, goes=self.stand.goes + 1)
            self.best.offer(self._anneal(order, self.stand.goes))

    def polish(self, patience: int = len(_HEATS)) -> None:
        """Go on until that has found nothing so many times running."""
        idle = 0
        while idle < patience and not self.done():
            before = self.best.cost
            self.adopt(self.go(replace(self.stand, order=None)))
            idle = idle + 1 if self.best.cost == before else 0

    def adopt(self, stand: Stand) -> None:
        self.stand = stand
        if stand.order is not None:
            self.best.offer(stand.order)

    def go(self, stand: Stand, stopped: Callable[[], bool] | None = None) -> Stand:
        """One go, from the order of the stand or else from the best known; not to be used if `stopped` came true."""
        order = stand.order
        if order is None:
            known = self.best.fitting or self.best.leanest
            if known is None:
                return stand
            order = known.order
        stand = replace(stand, goes=stand.goes + 1)
        if stand.owed <= 0 and self.best.order is not None:
            return self._window(order, stand, stopped or self.done)
        return replace(stand, order=self._anneal(order, stand.goes), spent=stand.spent + 1, owed=stand.owed - 1)

    def _anneal(self, order: Ints, seed: int) -> Ints:
        if self.tables is None:
            self.tables = pack(self.evictor.arrays)
        nodes = len(self.problem.nodes)
        state = start(self.tables, self.budget, order)
        least = state[TOTAL] if state[EXCESS] == 0 else 1 << 60
        keys, best = state[state[KEYS] : state[MEMORY]].copy(), np.array([least, 0])
        heat = _HEATS[seed % len(_HEATS)] * max(1, self.total)
        moves = min(12_000, max(1000, _MOVES // nodes))
        anneal(self.tables, state, keys, best, moves, heat, heat / 100, self.limits.seed * 1000 + seed)
        return order_of(keys[: best[1]], nodes) if best[1] else order

    def _window(self, order: Ints, stand: Stand, stopped: Callable[[], bool]) -> Stand:
        """As many nodes as make a program that is solved in a second or so: how many is learnt by trying."""
        ended = np.append(order, len(self.problem.nodes) - 1)
        memory = memory_of(self.evictor.arrays, ended)
        if len(memory) < len(ended) or memory.max() > self.budget:
            return replace(stand, order=order, spent=stand.spent + 1, owed=1)
        random = Random(self.limits.seed * 1000 + stand.goes)
        program = window.build(
            self.problem, ended.tolist(), memory.tolist(), self.budget, self._chosen(random, stand), self.scale
        )
        columns = len(program.start)
        if columns > _WIDE:
            return replace(stand, order=order, spent=stand.spent + 1, reach=max(_LEAST, stand.reach * 3 // 4))
        settings = scip.Settings(self.limits.clock.unless(stopped), seed=self.limits.seed, nodes=_TREE)
        answer = scip.solve(program.program, settings, [program.start])
        worth = 1 + answer.work // WORK
        reach = min(_MOST, stand.reach * 5 // 4 + 1) if answer.nodes < _TREE else max(_LEAST, stand.reach * 3 // 4)
        found = order if answer.values is None else np.array(program.order(answer.values), dtype=np.int64)
        return replace(stand, order=found, spent=stand.spent + worth, owed=worth, reach=reach)

    def _chosen(self, random: Random, stand: Stand) -> frozenset[int]:
        if self.disputed and stand.goes % 2:
            return frozenset(random.sample(self.disputed, min(len(self.disputed), stand.reach)))
        return window.neighbours(self.problem, random, stand.reach)
