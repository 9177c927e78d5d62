"""Finds an order of computes for a joint graph's problem and a budget.

Invariant: the order is legal by `simulate`. It keeps to the budget where `fits` says so. Otherwise it is the leanest of
what a search without a budget found and of plans that kept to theirs: it does not depend on the budget that was missed.
No given candidate that fits is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from remat_cli.model.proved import PlanProof, overhead_of
from remat_cli.torch.ranks import on_one_rank
from remat_cli.torch.remembering import Order, Remembered, key, recall, recall_known, remember, remember_known, time_of
from solvers.clock import Clock
from solvers.methods.auto.least_peak import minimize_peak
from solvers.methods.mincut.last_run import last_run_bound
from solvers.orders.kept import kept_bound
from solvers.problem import MOST_IN_ALL, Impossible, Limits, Problem, Result, Status
from solvers.registry import DEFAULT, METHODS
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
    place = key(problem, limit, time)
    known = recall_known(problem, graph)
    if (kept := recall(problem, limit, place)) is not None:
        order, bound = kept
        known = remember_known(problem, graph, Remembered((order,)))
        order, outcome = _chosen(problem, known.orders, limit)
        return PlannedOrder(order, outcome, before, limit, Status.FEASIBLE, bound)
    given = [whole, *candidates()]
    orders = [*given, *known.orders]
    if known.bound > limit:
        found, result = orders, Result(Status.INFEASIBLE, None, impossible=Impossible(limit, known.bound))
    else:
        found, result = _search(problem, orders, limit, Limits(clock=clock.at_least(SEARCH_SHARE)))
    lean = Remembered()
    if _leanest(problem, found) <= limit:
        orders = found
    elif time not in known.searched:  # with what was found, a larger budget could hold less than a smaller one
        lean = _lean(problem, given, Limits(clock=clock.again()))
        orders = [*orders, *lean.orders]
    order, outcome = _chosen(problem, orders, limit)
    status = result.status if result.status.found or outcome.peak > limit else Status.FEASIBLE
    known = remember_known(problem, graph, replace(lean, orders=(order, *lean.orders)))
    if outcome.peak <= limit:
        remember(place, order, result.bound_any_order, limit)
    least = max(result.needed or 0, kept_bound(problem), known.bound)
    return PlannedOrder(order, outcome, before, limit, status, result.bound_any_order, least)


def find_together(
    problem: Problem, limit: int, clock: Clock, candidates: Callable[[], Iterable[Order]]
) -> PlannedOrder:
    """The same on all ranks of torch.distributed, of which one searches."""

    def search() -> dict[str, Any]:
        found = find(problem, limit, clock, candidates)
        least = found.least_peak_bound
        return {"order": list(found.order), "status": found.status.value, "bound": found.bound, "least": least}

    said = on_one_rank(key(problem, limit, time_of(clock)), clock.seconds, search)
    found = judge(problem, tuple(said["order"]), limit)
    return replace(found, status=Status(said["status"]), bound=said["bound"], least_peak_bound=said["least"])


def judge(problem: Problem, order: Order, limit: int) -> PlannedOrder:
    """An order as a plan within so many bytes, of which nothing is proved."""
    return PlannedOrder(order, evaluate(problem, order)[1], baseline(problem)[1], limit, Status.FEASIBLE)


def _search(problem: Problem, known: list[Order], limit: int, limits: Limits) -> tuple[list[Order], Result]:
    """Ask the default method with the known orders as candidates; the order that it finds is known from then on."""
    solver = METHODS[DEFAULT].load(candidates=_best(problem, known, limit))
    answer = schedule(problem, limit, solver, limits)
    return (known if answer.plan is None else [*known, answer.plan.order()]), answer.result


def _lean(problem: Problem, known: list[Order], limits: Limits) -> Remembered:
    """Where nothing fits: an order of a peak as low as can be found, and a cheap one of that peak.

    No budget is given, so that the answer is the same for all of them.
    """
    proved = max(kept_bound(problem), last_run_bound(problem, limits.clock.share(BOUND_SHARE)))
    answer = schedule(problem, MOST_IN_ALL, minimize_peak, limits.share(1 / 4))
    if answer.plan is not None:
        known = [*known, answer.plan.order()]
    proved, step = max(proved, answer.result.peak_bound or 0), FIRST_STEP
    while step > LAST_STEP and (leanest := _leanest(problem, known)) > proved and not limits.clock.over():
        limit = max(proved, int(leanest * (1 - step)))
        known, _ = _search(problem, known, limit, limits.share(STEP_SHARE))
        step *= 2 if _leanest(problem, known) < leanest * (1 - LAST_STEP) else 1 / 2
    known, _ = _search(problem, known, _leanest(problem, known), limits)
    return Remembered((_chosen(problem, known, 0)[0],), proved, (time_of(limits.clock),))


def _leanest(problem: Problem, known: Sequence[Order]) -> int:
    return min(evaluate(problem, order)[1].peak for order in known)


def _best(problem: Problem, known: Sequence[Order], limit: int, most: int = 6) -> tuple[Order, ...]:
    """The orders that fit, the cheapest first, then the others by peak."""
    judged = [(evaluate(problem, order)[1], order) for order in dict.fromkeys(known)]
    judged.sort(key=lambda pair: (max(0, pair[0].peak - limit), pair[0].cost))
    return tuple(order for _, order in judged[:most])


def _chosen(problem: Problem, known: Sequence[Order], limit: int) -> tuple[Order, Outcome]:
    judged = [(order, evaluate(problem, order)[1]) for order in known]
    return min(judged, key=lambda pair: (max(0, pair[1].peak - limit), pair[1].cost, pair[1].peak))
