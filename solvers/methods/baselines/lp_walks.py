"""`lp-walks`: our own way from the linear relaxation to a schedule. After Checkmate's two-phase rounding (arXiv
1910.02653, section 5), which `lp-rounding` is as printed, but with more to choose from.

Symbols: S* is `Relaxed.fractions`. Deterministic rounding keeps what is over a threshold (the paper's 0.5; all are
tried), randomized rounding keeps each with probability S*. The relaxation is solved with the budget less an allowance
epsilon, which is searched from 0 up. What memory is left over is then spent (`polish`), and where S* as it stands
asks for too much, it guides an eviction walk; where nothing comes of S*, walks go without.

Invariant: the bound is the relaxation's with epsilon 0, for schedules with this order of first computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from solvers.methods.baselines.options import WALKING, Walking
from solvers.methods.baselines.relaxation import Relaxed, Whole, relax_improved, relax_paper
from solvers.notes import Note, SolverNote
from solvers.orders.arrays import Ints
from solvers.orders.best import GIVEN, Best
from solvers.orders.evict import RULES, Evictor, Hints, Rule
from solvers.orders.polish import polish
from solvers.problem import Limits, Problem, Result, Status

ALLOWANCES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
THRESHOLDS = tuple(step / 20 for step in range(1, 20))
# thresholds whose S guides eviction walks, and the weight of that guidance
GUIDING = tuple(product((0.1, 0.5, 0.9), (1e4, 30.0, 3.0)))
WALKS = 6  # walks for each of those
WORTH_FILLING = 4


def solve(
    problem: Problem,
    budget: int,
    limits: Limits,
    options: Walking = WALKING,
) -> Result:
    best = Best(problem, budget, limits)
    best.offer(range(len(problem.nodes)), GIVEN)
    if best.fitting is not None:
        return best.result()
    rounder = _Rounder(best, options.rounding == "randomized", options.samples)
    bound = float(sum(node.cost for node in problem.nodes))
    paper = options.relaxation == "paper"
    notes = [Note(SolverNote.BOUND_OF_PAPER_RELAXATION if paper else SolverNote.BOUND_OF_RELAXATION)]
    rounds_that_fit = 0
    for allowance in ALLOWANCES:
        relaxed = _relax(best, options.relaxation, allowance)
        if relaxed is None:
            notes += [] if allowance else [Note(SolverNote.RELAXATION_UNSOLVED)]
            break
        bound = bound if allowance else max(bound, relaxed.bound * (1 - 1e-9))
        rounds_that_fit += rounder.round(relaxed) or rounds_that_fit > 0
        if best.over() or rounds_that_fit > 1 or best.closed(bound):
            break
    if best.fitting is None:
        rounder.walk_unguided()
    result = best.result(bound, tuple(notes))
    closed = best.closed(bound) and result.status is Status.FEASIBLE
    return replace(result, status=Status.ORDER_OPTIMAL) if closed else result


def _relax(best: Best, whose: str, allowance: float) -> Relaxed | None:
    smaller = best.budget - round(allowance * (best.budget - best.problem.resident))
    if whose == "paper":
        return relax_paper(best.problem, smaller, best.limits)
    return relax_improved(best.problem, smaller, best.limits, best.budget)


@dataclass(slots=True)
class _Rounder:
    """The second phase: whole S, cheapest R."""

    best: Best
    randomized: bool
    samples: int
    evictor: Evictor = field(init=False)
    seen: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.evictor = Evictor(self.best.problem)

    def round(self, relaxed: Relaxed) -> bool:
        """Offer all orders that one relaxation leads to; the result says whether a rounding alone fitted."""
        fitting: list[tuple[int, tuple[int, ...]]] = []
        for order in self._roundings(relaxed):
            found = self.best.offer(order, "rounding")
            assert found is not None, "a rounding made an order that cannot run"
            if self.best.fits(found):
                fitting.append((found.cost, tuple(order)))
            if self.best.over():
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
        random = np.random.default_rng(self.best.limits.seed)
        for _ in range(self.samples):
            yield random.random(len(relaxed.fractions)) < relaxed.fractions

    def _walks(self, relaxed: Relaxed) -> Iterator[tuple[int, ...]]:
        for threshold, strength in GUIDING:
            hints = relaxed.hints_of(relaxed.fractions > threshold)
            for rule in RULES[:WALKS]:
                if self.best.over():
                    return
                guided = replace(rule, hint=strength)
                yield tuple(self._walk(guided, hints).tolist())

    def walk_unguided(self) -> None:
        for rule in RULES[:WALKS]:
            self.best.offer(self._walk(rule), "walks")

    def _walk(self, rule: Rule, hints: Hints | None = None) -> Ints:
        limits = self.best.limits
        return self.evictor.run(self.best.budget, rule, limits.seed, hints, limits.clock)

    def _weighed(self, order: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
        found = self.best.offer(order, "guided walks")
        return (found.cost, order) if found is not None and self.best.fits(found) else None

    def _fill(self, fitting: list[tuple[int, tuple[int, ...]]]) -> None:
        for _, order in sorted(set(fitting))[:WORTH_FILLING]:
            steps = np.array(order, dtype=np.int64)
            self.best.offer(polish(self.best.arrays, steps, self.best.budget, self.best.over), "polishing")

    def _new(self, whole: Whole) -> bool:
        key = whole.tobytes()
        if key in self.seen:
            return False
        self.seen.add(key)
        return True
