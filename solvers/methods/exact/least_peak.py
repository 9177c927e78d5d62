"""`--minimize peak`: the schedule of least peak, or the least peak at a price.

Invariant: `peak_bound` is a proof for every schedule, whatever it costs and whatever its order.
"""

from __future__ import annotations

from solvers.methods.exact.low_walks import lowest
from solvers.methods.exact.milp import solve
from solvers.methods.exact.options import Known
from solvers.notes import Note, SolverNote
from solvers.orders.best import Best, in_order
from solvers.orders.bounds import peak_bound, prove
from solvers.problem import Limits, Problem, Result, Status


def minimize_peak(problem: Problem, budget: int, limits: Limits, *, max_overhead: float | None = None) -> Result:
    """The order of least peak; with `max_overhead`, of those that cost at most that share more than no recomputation.

    `budget` is what the schedule must stay within in any case, as for every solver.
    """
    if max_overhead is not None:
        return _within_overhead(problem, budget, limits, max_overhead)
    best = lowest(problem, limits)
    assert best.leanest is not None
    bound = prove(problem, best.leanest.peak, limits)
    order = best.leanest.steps()
    if best.leanest.peak > budget:
        status = Status.INFEASIBLE if bound.peak > budget else Status.UNKNOWN
    else:
        status = Status.OPTIMAL if bound.peak >= best.leanest.peak else Status.FEASIBLE
    return bound.told(Result(status, order))


def _within_overhead(problem: Problem, budget: int, limits: Limits, max_overhead: float) -> Result:
    """Halve the range of budgets: each try asks `milp` whether the cost allowed suffices."""
    allowed = int(sum(node.cost for node in problem.nodes) * (1 + max_overhead))
    kept = Best(problem, 1 << 62, limits.silent(), in_order).weigh(range(len(problem.nodes)))
    assert kept is not None, "the order as given can always run"
    least = peak_bound(problem)
    low, high = least.peak - 1, kept.peak  # nothing fits in low; high is reached
    while high - low > max(1, high // 1000) and not limits.clock.over():
        middle = (low + high) // 2
        share = limits.silent().share(1 / 3)
        answer = solve(problem, middle, share, Known((kept.steps(),)))
        cheap = Best(problem, middle, limits.silent(), in_order)
        cheap.offer(() if answer.order is None else answer.order)
        if cheap.fitting is not None and cheap.fitting.cost <= allowed:
            kept, high = cheap.fitting, cheap.fitting.peak
        else:
            low = middle
    status = Status.FEASIBLE if high <= budget else Status.UNKNOWN
    note = Note(SolverNote.LEAST_PEAK_WITHIN, (max_overhead,))
    return least.told(Result(status, kept.steps(), None, (note,)))
