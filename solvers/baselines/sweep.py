"""Try the schedules that a method proposes and answer with the cheapest one that fits.

Invariant: cost and peak are `measure`'s, which tests hold equal to `simulate`. A method that finds nothing within the
budget answers UNKNOWN with its schedule of least peak: having failed proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.measure import ILLEGAL, measure, trim
from solvers.problem import Limits, Problem, Progress, Result, Status


@dataclass(slots=True)
class Sweep:
    """The best of what was tried so far."""

    problem: Problem
    budget: int
    limits: Limits
    arrays: Arrays = field(init=False)
    best: tuple[int, int, tuple[int, ...]] | None = None  # (cost, peak, order), within the budget
    leanest: tuple[int, int, tuple[int, ...]] | None = None  # (peak, cost, order)

    def __post_init__(self) -> None:
        self.arrays = arrays_of(self.problem)

    @property
    def over(self) -> bool:
        return self.limits.clock.over()

    def can_run(self, order: Ints) -> bool:
        return len(order) > 0 and measure(self.arrays, order)[1] != ILLEGAL

    def offer(self, order: Sequence[int]) -> tuple[int, int]:
        """Weigh a schedule, less the computes that nobody needs; says its cost and peak."""
        trimmed = trim(self.arrays, np.array(order, dtype=np.int64))
        cost, peak = measure(self.arrays, trimmed)
        assert peak != ILLEGAL, "a method made an order that cannot run"
        found = tuple(trimmed.tolist())
        if self.leanest is None or (peak, cost) < self.leanest[:2]:
            self.leanest = (peak, cost, found)
        if peak <= self.budget and (self.best is None or (cost, peak) < self.best[:2]):
            self.best = (cost, peak, found)
            self.limits.report(Progress(self.limits.clock.elapsed(), cost=cost, order=found))
        return cost, peak

    def result(self, bound: float | None = None, notes: tuple[str, ...] = ()) -> Result:
        total = sum(node.cost for node in self.problem.nodes)
        if self.best is None:
            assert self.leanest is not None
            reach = f"the least peak this method reaches is {self.leanest[0]} bytes"
            return Result(Status.UNKNOWN, self.leanest[2], bound, (*notes, reach))
        if self.best[0] == total:
            return Result(Status.OPTIMAL, self.best[2], total, notes)
        return Result(Status.FEASIBLE, self.best[2], bound, notes)


def cheapest_of(problem: Problem, budget: int, limits: Limits, orders: Iterator[Sequence[int]]) -> Result:
    """The cheapest of `orders` that fits; the time limit is looked at before each but the first."""
    sweep = Sweep(problem, budget, limits)
    for order in orders:
        sweep.offer(order)
        if sweep.over:
            break
    return sweep.result()


def over_knob(
    problem: Problem, budget: int, limits: Limits, knobs: Sequence[int], order_at: Callable[[int], Sequence[int]]
) -> Result:
    """Sweep a sorted list of knob settings: all of them, or on large graphs a few, and then more around the best."""
    sweep = Sweep(problem, budget, limits)
    most = max(LEAST_TRIES, NODES_TRIED // len(problem.nodes))
    tried: dict[int, tuple[bool, int, int]] = {}
    chosen = _spread(len(knobs), most if len(knobs) <= most else most // 2)
    while chosen:
        for place in chosen:
            cost, peak = sweep.offer(order_at(knobs[place]))
            tried[place] = (peak > budget, cost if peak <= budget else peak, place)
            if sweep.over:
                return sweep.result()
        chosen = _around(min(tried.values())[2], sorted(tried), len(knobs)) if len(tried) < most else []
    return sweep.result()


LEAST_TRIES, NODES_TRIED = 24, 50_000  # settings tried, at least; and as many as keep a sweep within a second or so


def _spread(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _around(place: int, tried: list[int], count: int) -> list[int]:
    """Untried places between `place` and the tried ones beside it."""
    at = tried.index(place)
    low = tried[at - 1] if at else -1
    high = tried[at + 1] if at + 1 < len(tried) else count
    between = [range(low + 1, place), range(place + 1, high)]
    return [part[i] for part in between for i in _spread(len(part), 4)]


def cannot(problem: Problem, why: str) -> Result:
    """A method that does not apply to this graph: the schedule without recomputation, and the reason."""
    return Result(Status.UNKNOWN, tuple(range(len(problem.nodes))), notes=(why,))
