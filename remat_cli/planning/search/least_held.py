"""`--minimize peak` of a model: the plan that holds least in its session.

Invariant: what is least is what the target counts, places and what kernels take beside included. So the plan is optimal
only if every plan is proved to hold as much, and no request for a budget below it is known to find another.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Policy
from remat_cli.planning.search.graphs import cheapest, searched
from remat_cli.planning.search.last_resort import leanest
from remat_cli.planning.search.proofs import unproved
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.untouched import fitting_already
from solvers.notes import SolverNote
from solvers.problem import Enough, Solver, Status

FALLING_ROUNDS = 8  # requests for less, each halfway from the largest budget without a plan to what is held
NEAREST = 0.0005  # share of what is held: on a way that short, only a byte less is asked for


def least_held(request: PlanRequest, by_cost: Solver, max_overhead: float | None = None) -> Policy:
    """The plan that holds least. `request`: for the order of least live bytes. `by_cost`: the default solver, which is
    asked for less and less. `max_overhead`: the most that the plan may take longer, where time counts."""
    subject, session = request.subject, request.target.session
    as_is = None  # where ops are to be cut, whoever asks compares with whole ones
    if not subject.pieces:
        as_is = fitting_already(subject, request.budget, request.method, request.limits, session)
    live = replace(request, by_memory=max_overhead is None, limits=request.time.least_live())
    best = yield from cheapest(live)
    if max_overhead is not None and (over := _time(best) - _allowed(best, max_overhead)) > 0:
        # what the rewriting adds takes time too, and is not known before there is a plan
        least, solver = max(0.0, max_overhead - over / _once(best)), cast(Any, request.solver)
        live = replace(live, solver=partial(solver, max_overhead=least))
        again = yield from cheapest(replace(live, limits=request.time.least_live()))
        best = again if again.found and _time(again) <= _allowed(again, max_overhead) else unproved(best)
    if as_is is not None and (not best.found or as_is.held < best.held):
        best = _with_bounds_of(best if as_is.subject.nodes == best.subject.nodes else unproved(best), as_is)
    if not best.found or request.subject.graph is None:
        return replace(best, limits=request.limits)
    if not request.target.tries_plans(best.subject):  # each further plan would have to be tried
        asked = replace(request, solver=by_cost)
        if max_overhead is not None:
            allowed = _allowed(best, max_overhead)
            asked = replace(asked, enough=Enough(cost=allowed, bound=allowed))
        best = yield from _fallen(asked, best)
        best = yield from _made_cheaper(replace(asked, enough=None), best)
    status = Status.OPTIMAL if _is_least(best) else Status.FEASIBLE
    result = replace(best.schedule.result, status=status)
    seconds = request.limits.clock.elapsed()
    return replace(best.with_result(result), limits=request.limits, seconds=seconds)


def _fallen(request: PlanRequest, best: Answer) -> Policy:
    """The least of the answer, of what is found for budgets that fall, and of the leanest plan."""
    request.so_far.keep(best)  # the time may end during what follows
    low = _bound(best) - 1
    for _ in range(FALLING_ROUNDS):
        if _is_least(best) or low >= best.held - 1 or request.time.late_by_time:
            break
        nearest = best.held - low <= NEAREST * best.held
        budget = best.held - 1 if nearest else (low + best.held) // 2
        best = yield from _asked_for_less(request, best, budget)
        if best.held > budget:
            low = budget
        request.so_far.keep(best)
    if not _is_least(best) and request.time.at_leisure:
        other = yield from leanest(request, best)
        best = _less(best, other, request.enough)
    return best


def _once(found: Answer) -> int:
    return max(1, sum(node.cost for node in found.subject.problem.nodes))


def _allowed(found: Answer, max_overhead: float) -> int:
    """The time that a plan may take."""
    return int(_once(found) * (1 + max_overhead))


def _time(found: Answer) -> int:
    """The cost of the plan with that of the ops that rewriting adds; 0 where there is no plan."""
    return found.time if found.found else 0


def _bound(found: Answer) -> int:
    """The bytes that every plan is proved to hold."""
    bound = found.schedule.result.needed
    return found.subject.problem.resident if bound is None else bound + found.aside


def _is_least(found: Answer) -> bool:
    return found.held <= _bound(found)


def _asked_for_less(request: PlanRequest, best: Answer, budget: int) -> Policy:
    """The better of the answer and of the default solver's for a budget below it."""
    limits = request.time.falling()
    other = yield from searched(replace(request, subject=best.subject.own, budget=budget, limits=limits, beside=True))
    return _less(best, other, request.enough)


def _made_cheaper(request: PlanRequest, best: Answer) -> Policy:
    """The cheaper of the answer and of what the default solver finds for the same memory in a part of what is left."""
    if request.late:
        return best
    limits = request.time.cheaper()
    asked = replace(request, subject=best.subject.own, budget=best.held, limits=limits, beside=True)
    other = yield from searched(asked)
    return _with_bounds_of(best, other) if other.found and _time(other) < _time(best) else best


def _less(best: Answer, other: Answer, enough: Enough | None) -> Answer:
    """The answer that holds less, and costs no more than it may."""
    if not other.found or (enough is not None and _time(other) > (enough.cost or 0)):
        return best
    return _with_bounds_of(best, other) if other.held < best.held else best


def _with_bounds_of(best: Answer, other: Answer) -> Answer:
    """The other answer with the bounds of the first, which are of memory."""
    proved = best.schedule.result
    result = replace(
        other.schedule.result,
        bound=None,
        bound_any_order=None,
        peak_bound=proved.needed,
        peak_node=proved.peak_node,
        peak_values=proved.peak_values,
        notes=(
            *(note for note in proved.notes if note.kind is SolverNote.LEAST_PEAK_WITHIN),
            *(note for note in other.schedule.result.notes if note.kind != PlanNote.LEANEST),
        ),
    )
    return other.with_result(result)
