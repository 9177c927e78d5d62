"""Eviction walks that reach as low a peak as they can.

Invariant: the order found is legal and of the class that the walks keep; nothing is claimed about its cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.orders.best import Best, in_order
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import RULES, Evictor, Rule
from solvers.problem import Limits, Problem, Progress

_AIMS = 6  # budgets to aim at, between the bound and the best peak


def lowest(problem: Problem, limits: Limits, rules: Sequence[Rule] = RULES, below: int | None = None) -> Best:
    """The best order of walks with ever smaller budgets. `below`: only lower peaks than this are aimed at."""
    best = Best(problem, -1, limits, in_order)  # nothing fits, so only the least peak counts
    best.offer(range(len(problem.nodes)))
    evictor, floor = Evictor(problem, limits.clock), peak_bound(problem).peak
    assert best.leanest is not None, "the order as given can always run"
    most = best.leanest.peak if below is None else max(floor, below)
    improved = True
    while improved:
        before = best.leanest.peak
        for aim in reversed(range(_AIMS)):  # the easy budgets come first, because their walks are short
            for rule in rules:
                if best.leanest.peak <= floor or limits.clock.over():
                    return best
                known = best.leanest.peak
                order = evictor.run(floor + (min(known, most) - floor) * aim // _AIMS, rule, limits.seed)
                limits.clock.spend(moves=max(len(order), len(problem.nodes)))
                best.offer(order)
                if best.leanest.peak < known:
                    limits.report(Progress(limits.clock.elapsed(), order=best.leanest.steps()))
        improved = best.leanest.peak < before
    return best
