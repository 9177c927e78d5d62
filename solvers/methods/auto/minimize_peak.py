"""`--minimize peak`: the schedule of least peak, or the least peak at a price.

Invariant: `peak_bound` is a proof for every schedule, whatever it costs and whatever its order.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.auto.auto import Auto
from solvers.methods.exact.low_walks import lowest
from solvers.notes import Note, SolverNote
from solvers.orders.best import GIVEN, KNOWN, Best, Weighed
from solvers.orders.bounds import PeakBound, bound_of, peak_bound
from solvers.pebbles.floor import dig
from solvers.problem import Enough, Limits, Problem, Result, Status

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
        return _within_overhead(problem, budget, limits, max_overhead, candidates)
    best = Best(problem, -1, limits)  # nothing fits, so only the least peak counts
    best.offer(range(len(problem.nodes)), GIVEN)
    for order in candidates:
        best.offer(order, KNOWN)
    walked = lowest(problem, limits.share(1 / 8)).leanest
    assert walked is not None
    best.offer(walked.order, "low walks")
    with best.ledger.at_work("least peak"):
        bound = dig(best, _least(best), limits.share(_DUG))
    bound = _ask_for_less(best, bound, limits)
    cheapest = _cheaper(best, limits)
    if _least(best) > budget:
        found, proof = bound.told(Result(Status.UNKNOWN, cheapest)), bound.against(budget)
        return best.attributed(found.refuted(proof) if proof else found)
    status = Status.OPTIMAL if bound.peak >= _least(best) else Status.FEASIBLE
    return best.attributed(bound.told(Result(status, cheapest)))


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
        found = Auto(best.problem, asked, quiet.share(1 / 4)).run([best.leanest.steps()], refusing=False)
        best.offer(found.order or (), found.found_by)
        best.ledger.include(found.parts)
        if found.needed is not None and found.needed > bound.peak:
            bound = bound_of(found)
        if _least(best) > asked:
            break
        part = min(_MOST, 2 * part)
    return bound


def _cheaper(best: Best, limits: Limits) -> tuple[int, ...]:
    """The cheapest known order of the least peak, after a search for cheaper ones."""
    assert best.leanest is not None
    fitting = Best(best.problem, best.leanest.peak, limits)
    fitting.offer(best.leanest.order, best.leanest.by)
    if not limits.clock.over():
        found = Auto(best.problem, fitting.budget, limits.share(_CHEAPER)).run([best.leanest.steps()])
        fitting.offer(found.order or (), found.found_by)
        best.ledger.include(found.parts)
    assert fitting.fitting is not None
    return fitting.fitting.steps()


def _within_overhead(
    problem: Problem, budget: int, limits: Limits, max_overhead: float, candidates: Sequence[Sequence[int]]
) -> Result:
    """Bisect the range of budgets: each try asks the default search whether the allowed cost is enough."""
    allowed = int(sum(node.cost for node in problem.nodes) * (1 + max_overhead))
    weigh = Best(problem, -1, limits.silent()).weigh
    best = weigh(range(len(problem.nodes)))
    assert best is not None, "the order as given can always run"

    def better(known: Weighed, order: Sequence[int]) -> Weighed:
        found = weigh(order)
        return known if found is None or found.cost > allowed or found.peak >= known.peak else found

    for order in candidates:
        best = better(best, order)
    least = peak_bound(problem)
    low = least.peak - 1  # nothing fits in it
    while best.peak - low > max(1, best.peak // 1000) and not limits.clock.over():
        middle = (low + best.peak) // 2
        part = Enough(cost=allowed, bound=allowed).within(limits.share(1 / 3))
        answer = Auto(problem, middle, part).run([best.steps()], refusing=False)
        best = better(best, answer.order or ())
        if best.peak > middle:
            low = middle
    status = Status.FEASIBLE if best.peak <= budget else Status.UNKNOWN
    note = Note(SolverNote.LEAST_PEAK_WITHIN, (max_overhead,))
    return least.told(Result(status, best.steps(), None, (note,)))
