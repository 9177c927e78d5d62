"""A relaxation in SCIP: its progress, and the orders that its answers suggest.

Invariant: a relaxation's bound only rises; nothing here decides what is legal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from solvers import scip
from solvers.methods.exact.cuts import list_held
from solvers.methods.exact.grouped import GroupedProgram
from solvers.methods.exact.projection import project
from solvers.orders.arrays import Ints
from solvers.orders.evict import Hints

ADDED = 4  # boundaries at first, and added in a round
_TREE = 40  # nodes of SCIP's search tree at first, for a program of _COLUMNS columns
_COLUMNS = 2000
_EMPHASIS = "fast"  # walks and annealing find better schedules than SCIP's own heuristics
_PACE = 0.01  # share of the gap that a search must have closed to be continued


@dataclass(slots=True)
class Relaxation:
    """One relaxation, with SCIP's progress on it."""

    cuts: GroupedProgram
    solving: scip.Solving | None = None
    nodes: int = 0
    work: int = 0
    bound: float = -scip.INFINITY
    raised: float = 0.0  # the rise of the bound by the last search
    cost: float = scip.INFINITY  # the bound cannot rise above this

    @property
    def paused(self) -> bool:
        return self.solving is not None and self.solving.paused

    @property
    def seconds(self) -> float:
        return 0.0 if self.solving is None else self.solving.seconds

    @property
    def columns(self) -> int:
        return len(self.cuts.program.costs)

    def search(self, settings: scip.Settings, effort: int, best: Ints | Sequence[int] | None) -> scip.Solving:
        """Begin the search, or continue it from where it stopped."""
        starts = [] if best is None else [project(self.cuts, list(map(int, best)))]
        nodes = self.nodes + effort * tree(self.columns)
        if self.solving is None:
            strong = ("branching/relpscost/initcand", 20) if nodes >= 10 else ("branching/pscost/priority", 1_000_000)
            settings = replace(settings, nodes=nodes, emphasis=_EMPHASIS, parameters=dict([strong]))
            self.solving = scip.Solving(self.cuts.program, settings, starts)
        else:
            self.solving.go_on(settings.clock, nodes, settings.enough, starts, settings.iterations)
        return self.solving

    def take(self, answer: scip.ProgramAnswer, scale: float) -> None:
        bound = max(self.bound, answer.bound * scale)
        self.nodes, self.work = answer.nodes, answer.work
        self.raised, self.bound = bound - self.bound, bound
        if answer.cost is not None:
            self.cost = answer.cost * scale

    def promising(self, known: int | None) -> bool:
        """Whether continuing may raise the bound by more than new boundaries could."""
        left = self.cost - self.bound
        return known is not None and isfinite(left) and left > known - self.cost and self.raised > left * _PACE


def tree(columns: int) -> int:
    """The nodes of the search tree for a round: later nodes take longer, and boundaries raise the bound more."""
    return max(1, int(_TREE * min(1.0, _COLUMNS / max(1, columns)) ** 3))


def first_boundaries(memory: Ints, budget: int) -> list[int]:
    """Stages spread over those that exceed the budget without recomputation, with the worst of them."""
    over = np.flatnonzero(memory > budget)
    if not len(over):
        return []
    places = np.linspace(0, len(over) - 1, ADDED + 2)[1:-1]
    return sorted({int(np.argmax(memory)), *(int(over[round(place)]) for place in places)})


def over_budget(memory: Ints, order: Ints, budget: int, taus: Sequence[int]) -> list[int]:
    """Stages at which an order does not fit and there is no boundary: the worst two, then others that lie well
    apart."""
    _, first = np.unique(order, return_index=True)
    worst = [(int(memory[step]), stage) for stage, step in enumerate(first) if memory[step] > budget]
    stages = [stage for _, stage in sorted(worst, reverse=True) if stage not in taus]
    found = stages[: ADDED // 2]
    for stage in stages:
        if len(found) < ADDED and all(abs(stage - other) > len(first) // 20 for other in (*taus, *found)):
            found.append(stage)
    return found


def over_again(memory: Ints, order: Ints, budget: int) -> set[tuple[int, int]]:
    """(stage, node) of the recomputations at which an order does not fit."""
    fresh = np.zeros(len(order), np.int64)
    fresh[np.unique(order, return_index=True)[1]] = 1
    stages = np.cumsum(fresh) - fresh
    steps = np.flatnonzero((memory > budget) & (fresh == 0))
    return {(int(stages[step]), int(order[step])) for step in steps}


def hints_of(cuts: GroupedProgram, values: Sequence[float]) -> Hints:
    """What S holds across the boundary at the end of each group, where the order of first computes is given."""
    keep = np.zeros((len(cuts.groups), len(cuts.problem.sizes)), np.bool_)
    for group, held in enumerate(list_held(cuts, values)[1:]):
        keep[group, sorted(held | cuts.free)] = True
    return Hints(np.array(cuts.windows.low, np.int64), keep)
