"""How low a peak eviction walks can reach.

Invariant: the order found is legal and of the class that the walks keep; nothing is claimed of its cost.
"""

from __future__ import annotations

from solvers.exact.incumbent import Incumbent
from solvers.orders.arrays import arrays_of
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import TASTES, Evictor
from solvers.problem import Limits, Problem, Progress

_AIMS = 6  # budgets aimed at, between the bound and the best peak


def search(problem: Problem, limits: Limits) -> Incumbent:
    """Walks with ever smaller budgets; each says how low it came."""
    best = Incumbent(arrays_of(problem), 0, lambda: None)
    best.offer(range(len(problem.nodes)))
    evictor, floor = Evictor(problem), peak_bound(problem).peak
    improved = True
    while improved:
        assert best.least_peak is not None
        before = best.least_peak
        for aim in range(_AIMS):
            for taste in TASTES:
                if best.least_peak <= floor or limits.clock.over():
                    return best
                known = best.least_peak
                best.offer(evictor.run(floor + (known - floor) * aim // _AIMS, taste, limits.seed))
                if best.least_peak < known and best.least_order is not None:
                    limits.report(Progress(limits.clock.elapsed(), order=tuple(map(int, best.least_order))))
        improved = best.least_peak < before
    return best
