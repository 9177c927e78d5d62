"""`lp-rounding`: the linear relaxation, its S made whole, and the cheapest R for that: Checkmate's two-phase rounding
(arXiv 1910.02653, section 5 and Algorithm 2).

Symbols: S* is `Relaxed.fractions`. Deterministic rounding keeps what is over a threshold (the paper's 0.5; all are
tried), randomized rounding keeps each with probability S*. The relaxation is solved with the budget less an allowance
epsilon, which is searched from 0 up. What memory is left over is then spent (`keep_more`), and where S* as it stands
asks for too much, it guides an eviction walk; where nothing comes of S*, walks go without.

Invariant: the bound is the relaxation's with epsilon 0, for schedules with this order of first computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from solvers.baselines.relaxation import Relaxed, Whole, relax_improved, relax_paper
from solvers.baselines.sweep import Sweep
from solvers.orders.evict import TASTES, Evictor
from solvers.orders.keep_more import keep_more
from solvers.problem import Limits, Problem, Result, Status

ALLOWANCES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
THRESHOLDS = tuple(step / 20 for step in range(1, 20))
GUIDING = tuple(product((0.1, 0.5, 0.9), (1e4, 30.0, 3.0)))  # thresholds whose S guides eviction walks, and how much
WALKS = 6  # for each of those
WORTH_FILLING = 4
CLASS = "the bound is a linear relaxation's and covers every schedule that first computes the ops in the order given"
PAPER_CLASS = f"{CLASS}, none more than once between two first computes"


def solve(
    problem: Problem,
    budget: int,
    limits: Limits,
    lp: str = "improved",
    rounding: str = "deterministic",
    samples: int = 50,
) -> Result:
    """`lp`: improved or paper. `rounding`: deterministic or randomized, the latter `samples` times."""
    if lp not in ("improved", "paper") or rounding not in ("deterministic", "randomized") or samples < 1:
        raise ValueError("lp is improved or paper, rounding is deterministic or randomized, samples at least 1")
    sweep = Sweep(problem, budget, limits)
    sweep.offer(range(len(problem.nodes)))
    if sweep.best is not None:
        return sweep.result()
    rounder = _Rounder(sweep, rounding == "randomized", samples)
    bound = float(sum(node.cost for node in problem.nodes))
    notes = [PAPER_CLASS if lp == "paper" else CLASS]
    rounds_that_fit = 0
    for allowance in ALLOWANCES:
        relaxed = _relax(sweep, lp, allowance)
        if relaxed is None:
            notes += [] if allowance else ["the relaxation has no solution, or none was found in time"]
            break
        bound = bound if allowance else max(bound, relaxed.bound * (1 - 1e-9))
        rounds_that_fit += rounder.round(relaxed) or rounds_that_fit > 0
        if sweep.over or rounds_that_fit > 1 or _closed(sweep, bound):
            break
    if sweep.best is None:
        rounder.walk_unguided()
    result = sweep.result(bound, tuple(notes))
    return replace(result, status=Status.OPTIMAL) if _closed(sweep, bound) else result


def _relax(sweep: Sweep, lp: str, allowance: float) -> Relaxed | None:
    smaller = sweep.budget - round(allowance * (sweep.budget - sweep.problem.resident))
    if lp == "paper":
        return relax_paper(sweep.problem, smaller, sweep.limits)
    return relax_improved(sweep.problem, smaller, sweep.limits, sweep.budget)


def _closed(sweep: Sweep, bound: float) -> bool:
    """Whether the bound is as near as was asked for."""
    return sweep.best is not None and sweep.best[0] <= bound * (1 + sweep.limits.gap)


@dataclass(slots=True)
class _Rounder:
    """The second phase: whole S, cheapest R."""

    sweep: Sweep
    randomized: bool
    samples: int
    evictor: Evictor = field(init=False)
    seen: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.evictor = Evictor(self.sweep.problem)

    def round(self, relaxed: Relaxed) -> bool:
        """Offer all that comes of one relaxation; says whether a rounding as such fitted."""
        fitting: list[tuple[int, tuple[int, ...]]] = []
        for order in self._roundings(relaxed):
            cost, peak = self.sweep.offer(order)
            if peak <= self.sweep.budget:
                fitting.append((cost, tuple(order)))
            if self.sweep.over:
                return bool(fitting)
        guided = [self._weighed(order) for order in self._walks(relaxed)]
        self._fill([*fitting, *(found for found in guided if found is not None)])
        return bool(fitting)

    def _roundings(self, relaxed: Relaxed) -> Iterator[list[int]]:
        for whole in self._wholes(relaxed):
            if self._new(whole):
                yield relaxed.order_of(whole)

    def _wholes(self, relaxed: Relaxed) -> Iterator[Whole]:
        if not self.randomized:
            yield from (relaxed.fractions > threshold for threshold in THRESHOLDS)
            return
        random = np.random.default_rng(self.sweep.limits.seed)
        for _ in range(self.samples):
            yield random.random(len(relaxed.fractions)) < relaxed.fractions

    def _walks(self, relaxed: Relaxed) -> Iterator[tuple[int, ...]]:
        for threshold, strength in GUIDING:
            hints = relaxed.hints_of(relaxed.fractions > threshold)
            for taste in TASTES[:WALKS]:
                if self.sweep.over:
                    return
                guided = replace(taste, hint=strength)
                order = self.evictor.run(self.sweep.budget, guided, self.sweep.limits.seed, hints)
                if self.sweep.can_run(order):
                    yield tuple(order.tolist())

    def walk_unguided(self) -> None:
        for taste in TASTES[:WALKS]:
            order = self.evictor.run(self.sweep.budget, taste, self.sweep.limits.seed)
            if self.sweep.can_run(order):
                self.sweep.offer(order.tolist())

    def _weighed(self, order: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
        cost, peak = self.sweep.offer(order)
        return (cost, order) if peak <= self.sweep.budget else None

    def _fill(self, fitting: list[tuple[int, tuple[int, ...]]]) -> None:
        for _, order in sorted(set(fitting))[:WORTH_FILLING]:
            arrays = self.sweep.arrays
            steps = np.array(order, dtype=np.int64)
            self.sweep.offer(keep_more(arrays, steps, self.sweep.budget, lambda: self.sweep.over).tolist())

    def _new(self, whole: Whole) -> bool:
        key = whole.tobytes()
        if key in self.seen:
            return False
        self.seen.add(key)
        return True
