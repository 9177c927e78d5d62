"""Checkmate's question answered with a proof: the cheapest recomputation that fits, for the given first computes.

One anytime loop. Eviction walks give schedules at once; cuts in time give a bound and say what to hold across each
boundary, which guides further walks; boundaries are added where the relaxation's answer does not fit, until schedule
and bound meet. (P. Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys
2020, pose the question.)

Invariant: the bound holds for every schedule that first computes the nodes in the order given, wherever and however
often it recomputes, and the schedules returned are of that class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import ceil, gcd, isfinite
from time import monotonic

import numpy as np

from solvers import scip
from solvers.exact.arrays import arrays_of
from solvers.exact.cuts import Cuts, build, expand, kept, project, small_values
from solvers.exact.evict import Evictor, Hints, Taste
from solvers.exact.incumbent import Incumbent
from solvers.exact.measure import memory_of
from solvers.problem import Limits, Node, Problem, Progress, Result, Status

_CLASS = "the bound covers every schedule that first computes the ops in the model's order"
_SMALL = 0.001
_ADDED = 4
TASTES = tuple(
    Taste(cost, size, distance, depth)
    for depth, cost, size, distance in product((False, True), (1.0, 0.5), (1.0, 0.5, 0.0), (0.0, 1.0, 0.5))
)


def solve(problem: Problem, budget: int, limits: Limits, *, candidates: Sequence[Sequence[int]] = ()) -> Result:
    """`candidates`: orders known beforehand, such as the plans of smaller budgets."""
    hunt = Hunt(problem, budget, limits)
    for order in candidates:
        hunt.best.offer(order)
    return hunt.run()


class Hunt:
    """One search for the best order within one budget."""

    def __init__(self, problem: Problem, budget: int, limits: Limits) -> None:
        self.problem = problem
        self.ended = replace(problem, nodes=(*problem.nodes, Node(0, tuple(sorted(set(problem.outputs))), ())))
        self.budget = budget
        self.limits = limits
        self.begun = monotonic()
        self.arrays = arrays_of(problem)
        self.evictor = Evictor(problem)
        self.total = sum(node.cost for node in problem.nodes)
        self.unit = max(1, gcd(*(node.cost for node in problem.nodes)))
        self.bound = self.total
        self.infeasible = False
        self.best = Incumbent(self.arrays, budget, self.tell)

    def run(self) -> Result:
        self.best.offer(range(len(self.problem.nodes)))
        if not self.done():
            self.walk(None)
        if not self.done():
            self.refine()
        return self.result()

    def seconds(self) -> float:
        return monotonic() - self.begun

    def left(self) -> float:
        return self.limits.seconds - self.seconds()

    def tell(self) -> None:
        order = None if self.best.order is None else tuple(map(int, self.best.order))
        self.limits.report(Progress(self.seconds(), self.best.cost, self.bound, order))

    def closed(self) -> bool:
        return self.best.cost is not None and self.best.cost <= self.bound * (1 + self.limits.gap)

    def done(self) -> bool:
        return self.infeasible or self.closed() or self.left() <= 0 or self.limits.stopped()

    def raise_bound(self, bound: float) -> None:
        """A cost is the total and some multiple of what all costs have in common."""
        if not isfinite(bound):
            return
        steps = ceil((bound - self.total) / self.unit - 1e-6)
        raised = self.total + max(0, steps) * self.unit
        if raised > self.bound:
            self.bound = raised
            self.tell()

    def walk(self, hints: Hints | None, tastes: Sequence[Taste] = TASTES) -> None:
        for taste in tastes:
            if self.done():
                return
            self.best.offer(self.evictor.run(self.budget, taste, self.limits.seed, hints))

    def refine(self) -> None:
        free = small_values(self.ended, self.budget, _SMALL)
        memory = memory_of(self.arrays, np.arange(len(self.problem.nodes), dtype=np.int64))
        taus = first_boundaries(memory, self.budget)
        scale = max(node.cost for node in self.problem.nodes) / 1000 or 1.0
        while not self.done():
            cuts = build(self.ended, self.budget, taus, free, scale)
            answer = self.relax(cuts, scale)
            if answer.status is Status.INFEASIBLE:
                self.infeasible = self.best.order is None
                return
            self.raise_bound(self.total + answer.bound * scale)
            if answer.values is None or self.done():
                return
            order = np.array(expand(cuts, answer.values), dtype=np.int64)
            self.best.offer(order)
            hints = hints_of(cuts, answer.values)
            for strength in (1e4, 30.0, 3.0):
                self.walk(hints, [replace(taste, hint=strength) for taste in TASTES[:18]])
            more = over_budget(memory_of(self.arrays, order), order, self.budget, taus)
            if not more:
                return
            taus = sorted({*taus, *more})

    def relax(self, cuts: Cuts, scale: float) -> scip.Answer:
        starts = [] if self.best.order is None else [project(cuts, list(map(int, self.best.order)))]
        cost = self.best.cost
        settings = scip.Settings(
            seconds=self.left(),
            gap=self.limits.gap / 4,
            seed=self.limits.seed,
            enough=None if cost is None else (cost / (1 + self.limits.gap) + self.unit) / scale,
        )
        cuts.program.offset = self.total / scale
        answer = scip.solve(cuts.program, settings, starts, stopped=self.limits.stopped)
        return replace(answer, bound=answer.bound - cuts.program.offset)

    def result(self) -> Result:
        best = self.best
        if best.order is not None:
            status = Status.OPTIMAL if self.closed() else Status.FEASIBLE
            return Result(status, tuple(map(int, best.order)), self.bound, (_CLASS,))
        status = Status.INFEASIBLE if self.infeasible else Status.UNKNOWN
        order = None if best.least_order is None else tuple(map(int, best.least_order))
        return Result(status, order, None, (_CLASS,))


def first_boundaries(memory: np.ndarray, budget: int) -> list[int]:
    """Four stages spread over those whose memory is over budget without recomputation."""
    over = np.flatnonzero(memory > budget)
    if not len(over):
        return []
    places = np.linspace(0, len(over) - 1, 6)[1:-1]
    worst = int(np.argmax(memory))
    return sorted({worst, *(int(over[round(place)]) for place in places)})


def over_budget(memory: np.ndarray, order: np.ndarray, budget: int, taus: Sequence[int]) -> list[int]:
    """The stages, worst first, at which an order does not fit and no boundary stands."""
    _, first = np.unique(order, return_index=True)
    worst = [(int(memory[step]), stage) for stage, step in enumerate(first) if memory[step] > budget]
    return [stage for _, stage in sorted(worst, reverse=True) if stage not in taus][:_ADDED]


def hints_of(cuts: Cuts, values: Sequence[float]) -> Hints:
    held = kept(cuts, values)
    group = np.zeros(len(cuts.problem.nodes), np.int64)
    keep = np.zeros((len(cuts.groups), len(cuts.problem.sizes)), np.bool_)
    for g, stages in enumerate(cuts.groups):
        group[stages.start : stages.stop] = g
        if g + 1 < len(cuts.groups):
            keep[g, sorted(held[g + 1] | cuts.free)] = True
    return Hints(group, keep)


__all__ = ["solve"]
