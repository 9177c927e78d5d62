"""Requests for what a session holds, where its original was measured to hold something else than predicted.

Invariant: a plan that answers one of them keeps to the budget that was asked for, as far as it was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from remat_cli.model.problem_of import as_it_stands
from remat_cli.planning.search.request import PlanRequest
from solvers.schedule import baseline


def ways(request: PlanRequest) -> Iterator[PlanRequest]:
    """Requests for each prediction of the session's memory: with less where the original holds more than predicted,
    then with more where it holds less."""
    for later in request.target.later_runs(request.subject):
        reading = replace(request, later_runs=later)
        unknown = max(0, -_less_held(reading))
        if unknown and request.budget - unknown > request.subject.problem.resident:
            yield replace(reading, budget=request.budget - unknown)
        yield foreseen(reading)


def foreseen(request: PlanRequest) -> PlanRequest:
    """The request with a larger budget where the original holds less than predicted, because fused values are not
    held."""
    return replace(request, budget=request.budget + max(0, _less_held(request)))


def _less_held(request: PlanRequest) -> int:
    """How much less than predicted the original was measured to hold, where its plans can be expected to do so too.

    Where the graph's ops are the kernels that run, a plan's prediction is better than that of the original's own order.
    """
    subject = request.subject
    if subject.behaviour.peaks is None or subject.behaviour.optimized:
        return 0
    before = as_it_stands(request.in_units(subject.as_given.problem))
    return baseline(before)[1].peak - max(subject.behaviour.peaks)
