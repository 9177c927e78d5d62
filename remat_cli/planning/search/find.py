"""From a request to an answer: the graphs that a target plans, one after the other, until one has a plan.

This is where a search begins: `find_tried` where plans must be run before they are given, `find_witnessed` where their
kernels must be the original's, and below both the loop of `find_fitting`.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.tried import find_tried
from remat_cli.planning.search.witness import find_witnessed
from remat_cli.planning.targets.trials import Trials
from remat_cli.planning.time_plan import FIRST_GRAPH_SHARE
from solvers.problem import Status


def find_plan(request: PlanRequest) -> Answer:
    """A plan that fits, whose results cannot differ from the original's in the session that it is for.

    The graph that a session runs is planned first. Where that has no plan there may be one of the file's own ops: what
    is added for it keeps default options from folding constants, and from packing what they make of them. So whether
    there is none at all is for that search to say.
    """
    first, *others = request.target.graphs(request.subject)
    limits = request.limits.share(FIRST_GRAPH_SHARE) if others else request.limits
    found = _find_of(replace(request, subject=first, limits=limits))
    if others and not found.found and (not request.late or found.status is Status.INFEASIBLE):
        found = _find_of(replace(request, subject=others[0]))
    return replace(found, limits=request.limits, model=None)


def _find_of(request: PlanRequest) -> Answer:
    if request.target.tries_plans(request.subject):
        return find_tried(request)
    return find_witnessed(request, Trials(request.target))
