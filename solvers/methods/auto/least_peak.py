"""`--minimize peak`: the schedule of least peak, or the least peak at a price.

Invariant: `peak_bound` is a proof for every schedule, whatever it costs and whatever its order.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.auto.auto import solve as search
from solvers.methods.exact.low_walks import lowest
from solvers.methods.exact.milp import solve
from solvers.methods.exact.options import Known
from solvers.notes import Note, SolverNote
from solvers.orders.best import Best, in_order
from solvers.orders.bounds import PeakBound, peak_bound
from solvers.pebbles.floor import dig
from solvers.problem import Limits, Problem, Result, Status

# shares of the range between the bound and the least known peak by which the next search asks for less: first, most
_FIRST, _MOST = 0.01, 0.1
_DUG = 1 / 2  # share of the time left for the search through all orders
_CHEAPER = 1 / 2  # share of the time left for a cheaper schedule of that peak


def minimize_peak(
    problem: Problem,
    budget: int,
    limits: Limits,
    *,
    max_overhead: float | None = None,
    candidates: Sequence[Sequence[int]] = (),
) -> Result:
    """The order of least peak; with `max_overhead`, the least peak among orders whose overhead is at most that.

    `budget` is a limit that the schedule must keep to, as for every solver. `candidates`: orders known beforehand.
    """
    if max_overhead is not None:
        return _within_overhead(problem, budget, limits, max_overhead)
    best = Best(problem, -1, limits)  # nothing fits, so only the least peak counts
    for order in (range(len(problem.nodes)), *candidates):
        best.offer(order)
    walked = lowest(problem, limits.share(1 / 8)).leanest
    assert walked is not None
    best.offer(walked.order)
    bound = dig(best, _least(best), limits.share(_DUG))
    bound = _ask_for_less(best, bound, limits)
    cheapest = _cheaper(best, limits)
    if _least(best) > budget:
        status = Status.INFEASIBLE if bound.peak > budget else Status.UNKNOWN
    else:
        status = Status.OPTIMAL if bound.peak >= _least(best) else Status.FEASIBLE
    return bound.told(Result(status, cheapest))


def _least(best: Best) -> int:
    assert best.leanest is not None, "the order as given can always run"
    return best.leanest.peak


def _ask_for_less(best: Best, bound: PeakBound, limits: Limits) -> PeakBound:
    """Run the default search for less and less memory until it finds nothing; it may prove that there is nothing."""
    part, quiet = _FIRST, limits.silent()
    while bound.peak < _least(best) and not limits.clock.over():
        known = _least(best)
        asked = known - max(1, int((known - bound.peak) * part))
        assert best.leanest is not None
        found = search(best.problem, asked, quiet.share(1 / 4), Known((best.leanest.steps(),)))
        best.offer(found.order or ())
        if found.peak_bound is not None and found.peak_bound > bound.peak:
            bound = PeakBound(found.peak_bound, found.peak_node, found.peak_values)
        if _least(best) > asked:
            break
        part = min(_MOST, 2 * part)
    return bound


def _cheaper(best: Best, limits: Limits) -> tuple[int, ...]:
    """The cheapest known order of the least peak, after a search for cheaper ones."""
    assert best.leanest is not None
    fitting = Best(best.problem, best.leanest.peak, limits)
    fitting.offer(best.leanest.order)
    if not limits.clock.over():
        found = search(best.problem, fitting.budget, limits.share(_CHEAPER), Known((best.leanest.steps(),)))
        fitting.offer(found.order or ())
    assert fitting.fitting is not None
    return fitting.fitting.steps()


def _within_overhead(problem: Problem, budget: int, limits: Limits, max_overhead: float) -> Result:
    """Bisect the range of budgets: each try asks `milp` whether the allowed cost is enough."""
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
