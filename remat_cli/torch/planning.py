"""Finds an order of computes for a joint graph's problem and a budget.

Invariant: the order is legal by `simulate`. It keeps to the budget where `fits` says so. No given candidate that fits
is cheaper. Of a graph and a time to search, in whatever order budgets are asked: a smaller budget never holds more than
a larger one, and all that are missed hold the same, the leanest of what a search without a budget found and of plans
that kept to theirs. So what was answered binds what is asked later, also where a plan of other memory costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from remat_cli.model.proved import PlanProof, overhead_of
from remat_cli.torch.ranks import on_one_rank
from remat_cli.torch.remembering import Order, PastAnswer, Remembered, key, recall, remember, time_of
from solvers.clock import Clock
from solvers.methods.auto.auto import Auto
from solvers.methods.auto.leanest import find_lean
from solvers.methods.mincut.last_run import last_run_bound
from solvers.orders.kept import kept_bound
from solvers.problem import Impossible, Limits, Problem, Result, Status
from solvers.reductions.views import reduced
from solvers.schedule import baseline, evaluate, schedule
from solvers.simulate import Outcome

SEARCH_SHARE = 0.7  # of the time: at least so much for the search, however long the candidates took
BOUND_SHARE = 1 / 20  # of the time: for the bound by last runs
FIRST_STEP = 0.04  # share of the leanest peak by which a search aims below it; twice that once it finds less, or half
LAST_STEP = 0.002  # a smaller step is not worth a search
STEP_SHARE = 1 / 4  # of the time that is left: for a step


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """`before`: every op once, in the graph's order. `bound`: the cost that no schedule within the budget goes
    below."""

    order: Order
    outcome: Outcome
    before: Outcome
    budget: int
    status: Status
    bound: float | None = None
    least_peak_bound: int | None = None

    @property
    def fits(self) -> bool:
        return self.outcome.peak <= self.budget

    @property
    def overhead(self) -> float:
        return overhead_of(self.outcome.cost, self.before.cost)

    @property
    def gap(self) -> float | None:
        return PlanProof(self.outcome.cost, self.bound).gap


def find(problem: Problem, limit: int, clock: Clock, candidates: Callable[[], Iterable[Order]]) -> PlannedOrder:
    """The cheapest order known that holds no more than `limit` bytes.

    Where nothing is found that fits, the search for the leanest takes as long again, once for each graph.
    """
    _, before = baseline(problem)
    whole = tuple(range(len(problem.nodes)))
    if before.peak <= limit:
        return PlannedOrder(whole, before, before, limit, Status.OPTIMAL, float(before.cost))
    time, graph = time_of(clock), key(problem)
    known = recall(problem, graph)
    answers = [answer for answer in known.answers if answer.time == time]
    floor = max((answer.peak for answer in answers if answer.limit < limit), default=0)
    if same := [answer for answer in answers if answer.holds_for(limit)]:
        answer = min(same, key=lambda answer: answer.peak)
        return _as_before(problem, limit, answer, floor if answer.limit else answer.peak, known)
    given = [whole, *candidates()]
    orders = [*given, *known.orders, *(answer.order for answer in answers)]
    if known.bound > limit:
        found, result = orders, Result(Status.INFEASIBLE, None, impossible=Impossible(limit, known.bound))
    else:
        found, result = _search(problem, orders, limit, Limits(clock=clock.at_least(SEARCH_SHARE)))
    least = max(result.needed or 0, kept_bound(problem), known.bound)
    if _leanest(problem, found) > limit:  # with what was found, a larger budget could hold less than a smaller one
        lean, proved = _lean(problem, given, clock)
        lean, outcome = _chosen(problem, [lean, *orders], 0)
        answers.append(PastAnswer(time, 0, lean, outcome.peak))
        found, least, floor = [lean], max(least, proved), 0
    order, outcome = _chosen(problem, found, limit, floor)
    if outcome.peak <= limit:
        answers.append(PastAnswer(time, limit, order, outcome.peak, result.bound_any_order))
    remember(problem, graph, Remembered((), least, tuple(answers)))
    status = result.status if result.status.found or outcome.peak > limit else Status.FEASIBLE
    return PlannedOrder(order, outcome, before, limit, status, result.bound_any_order, least)


def _as_before(problem: Problem, limit: int, answer: PastAnswer, floor: int, known: Remembered) -> PlannedOrder:
    """The plan of an answer that holds for this limit as well, or a cheaper one that is known by now."""
    order, outcome = _chosen(problem, [answer.order, *known.orders], answer.peak, floor)
    if answer.limit not in (0, limit):
        new = replace(answer, limit=limit, order=order, peak=outcome.peak)
        remember(problem, key(problem), Remembered((), 0, (new,)))
    status = Status.FEASIBLE if outcome.peak <= limit else Status.UNKNOWN
    least = max(known.bound, kept_bound(problem))
    return replace(judge(problem, order, limit), status=status, bound=answer.bound, least_peak_bound=least)


def find_together(
    problem: Problem, limit: int, clock: Clock, candidates: Callable[[], Iterable[Order]]
) -> PlannedOrder:
    """The same on all ranks of torch.distributed, of which one searches."""

    def search() -> dict[str, Any]:
        found = find(problem, limit, clock, candidates)
        least = found.least_peak_bound
        return {"order": list(found.order), "status": found.status.value, "bound": found.bound, "least": least}

    time = time_of(clock)
    said = on_one_rank(key(problem, limit, time), clock.seconds, search)
    found = judge(problem, tuple(said["order"]), limit)
    if found.before.peak > limit:  # as the rank knows that searched
        answer = PastAnswer(time, limit if found.fits else 0, found.order, found.outcome.peak, said["bound"])
        remember(problem, key(problem), Remembered((), 0, (answer,)))
    return replace(found, status=Status(said["status"]), bound=said["bound"], least_peak_bound=said["least"])


def judge(problem: Problem, order: Order, limit: int) -> PlannedOrder:
    """An order as a plan within so many bytes, of which nothing is proved."""
    return PlannedOrder(order, evaluate(problem, order)[1], baseline(problem)[1], limit, Status.FEASIBLE)


def _search(problem: Problem, known: list[Order], limit: int, limits: Limits) -> tuple[list[Order], Result]:
    """Ask the default method with the known orders as candidates; the order that it finds is known from then on. It is
    not to say how small a budget would do: `_lean` asks that once for a graph."""

    def solve(asked: Problem, budget: int, own: Limits) -> Result:
        return Auto(asked, budget, own).run(_best(problem, known, limit), refusing=False)

    answer = schedule(problem, limit, solve, limits)
    return (known if answer.plan is None else [*known, answer.plan.order()]), answer.result


def _lean(problem: Problem, known: list[Order], clock: Clock) -> tuple[Order, int]:
    """Where nothing fits: a cheap order of a peak as low as can be found, and a peak that none goes below.

    No budget is given, so that the answer is the same for all of them.
    """
    limits = Limits(clock=clock.again())
    proved = max(kept_bound(problem), last_run_bound(problem, limits.clock.share(BOUND_SHARE)))
    smaller = reduced(problem)
    lean = find_lean(smaller.problem, limits)
    known = [*known, smaller.expand(lean.order)]
    proved, step = max(proved, lean.bound.peak), FIRST_STEP
    while step > LAST_STEP and (leanest := _leanest(problem, known)) > proved and not limits.clock.over():
        limit = max(proved, int(leanest * (1 - step)))
        known, _ = _search(problem, known, limit, limits.share(STEP_SHARE))
        step *= 2 if _leanest(problem, known) < leanest * (1 - LAST_STEP) else 1 / 2
    known, _ = _search(problem, known, _leanest(problem, known), Limits(clock=clock.again()))
    return _chosen(problem, known, 0)[0], proved


def _leanest(problem: Problem, known: Sequence[Order]) -> int:
    return min(evaluate(problem, order)[1].peak for order in known)


def _best(problem: Problem, known: Sequence[Order], limit: int, most: int = 6) -> tuple[Order, ...]:
    """The orders that fit, the cheapest first, then the others by peak."""
    judged = [(evaluate(problem, order)[1], order) for order in dict.fromkeys(known)]
    judged.sort(key=lambda pair: (max(0, pair[0].peak - limit), pair[0].cost))
    return tuple(order for _, order in judged[:most])


def _chosen(problem: Problem, known: Sequence[Order], limit: int, floor: int = 0) -> tuple[Order, Outcome]:
    """The cheapest order that holds no more than `limit` and no less than `floor`, or else the one nearest to that."""
    judged = [(order, evaluate(problem, order)[1]) for order in known]
    return min(judged, key=lambda one: (max(0, one[1].peak - limit, floor - one[1].peak), one[1].cost, one[1].peak))
