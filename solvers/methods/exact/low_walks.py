"""Eviction walks that reach as low a peak as they can.

Invariant: the order found is legal and of the class that the walks keep; nothing is claimed about its cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.orders.best import GIVEN, Best, in_order
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import RULES, Evictor, Rule
from solvers.problem import Limits, Problem, Progress

# budgets to aim at, between the bound (0) and the best peak (1). The easy ones come first, because their walks are
# short; a little less than the best peak is aimed at last, where much less is not met.
_AIMS = (5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0.0)
_NEAR = (0.995, 0.98, 0.95, 0.9)


def lowest(
    problem: Problem, limits: Limits, rules: Sequence[Rule] = RULES, patient: bool = True, enough: int = 0
) -> Best:
    """The best order of walks with ever smaller budgets. `patient`: lower aims are tried as well after
    one that no rule met, which takes most of the time; `enough`: a peak that ends the search."""
    best = Best(problem, -1, limits, in_order)  # nothing fits, so only the least peak counts
    best.offer(range(len(problem.nodes)), GIVEN)
    evictor, floor = Evictor(problem), peak_bound(problem).peak
    assert best.leanest is not None, "the order as given can always run"
    for aims in (_AIMS, _NEAR) if patient else (_AIMS,):
        improved = True
        while improved:
            before = best.leanest.peak
            for aim in aims:
                reached = best.leanest.peak
                for rule in rules:
                    if best.leanest.peak <= max(floor, enough) or limits.clock.over():
                        return best
                    known = best.leanest.peak
                    order = evictor.run(floor + int((known - floor) * aim), rule, limits.seed, clock=limits.clock)
                    best.offer(order, "walks")
                    if best.leanest.peak < known:
                        limits.report(Progress(limits.clock.elapsed(), order=best.leanest.steps()))
                if not patient and best.leanest.peak == reached:
                    break
            improved = best.leanest.peak < before
    return best
