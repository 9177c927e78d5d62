"""`--minimize peak`: the schedule of least peak, or the least peak at a price.

Invariant: `peak_bound` is a proof; for what costs at most so much more, it covers the class that `milp`'s bound covers.
"""

from __future__ import annotations

from dataclasses import astuple

from solvers.exact.incumbent import Incumbent
from solvers.exact.lowest import search
from solvers.exact.milp import solve
from solvers.orders.arrays import arrays_of
from solvers.orders.bounds import peak_bound, prove
from solvers.problem import Limits, Problem, Result, Status


def minimize_peak(problem: Problem, budget: int, limits: Limits, *, max_overhead: float | None = None) -> Result:
    """The order of least peak; with `max_overhead`, of those that cost at most that share more than no recomputation.

    `budget` is what the schedule must stay within in any case, as for every solver.
    """
    if max_overhead is not None:
        return _within_overhead(problem, budget, limits, max_overhead)
    best = search(problem, limits)
    assert best.least_order is not None
    assert best.least_peak is not None
    bound = prove(problem, best.least_peak, limits)
    order = tuple(map(int, best.least_order))
    if best.least_peak > budget:
        status = Status.INFEASIBLE if bound.peak > budget else Status.UNKNOWN
    else:
        status = Status.OPTIMAL if bound.peak >= best.least_peak else Status.FEASIBLE
    return Result(status, order, None, (), *astuple(bound))


def _within_overhead(problem: Problem, budget: int, limits: Limits, max_overhead: float) -> Result:
    """Halve the range of budgets: each try asks `milp` whether the cost allowed suffices."""
    allowed = int(sum(node.cost for node in problem.nodes) * (1 + max_overhead))
    plain = tuple(range(len(problem.nodes)))
    best = Incumbent(arrays_of(problem), 1 << 62, lambda: None)
    best.offer(plain)
    kept, peak = plain, best.peak
    low, high = peak_bound(problem).peak - 1, peak  # nothing fits in low; high is reached
    proved = low
    while high - low > max(1, high // 1000) and not limits.clock.over():
        middle = (low + high) // 2
        share = limits.silent().share(1 / 3)
        answer = solve(problem, middle, share, candidates=(kept,))
        cheap = Incumbent(arrays_of(problem), middle, lambda: None)
        if answer.order is not None:
            cheap.offer(answer.order)
        if cheap.order is not None and cheap.cost is not None and cheap.cost <= allowed:
            kept, high = tuple(map(int, cheap.order)), cheap.peak
        else:
            low = middle
            if answer.status is Status.INFEASIBLE or (answer.bound is not None and answer.bound > allowed):
                proved = max(proved, middle)
    status = Status.FEASIBLE if high <= budget else Status.UNKNOWN
    note = f"least peak found at an overhead of at most {max_overhead:.1%}"
    return Result(status, kept, None, (note,), proved + 1)
