"""Attempts by the graphs that a target plans, one after the other, until one has a plan; then the plan of last resort.

Invariant: nothing is said to be impossible unless it is in every graph whose plans would have answered.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Policy
from remat_cli.planning.search.last_resort import keep_refusal, last_resort
from remat_cli.planning.search.measured import of_graph
from remat_cli.planning.search.proofs import agreed, judged, unproved
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.untouched import held_as_it_is
from remat_cli.planning.subjects.subject import Subject
from solvers.notes import Note
from solvers.problem import Status


def cheapest(request: PlanRequest) -> Policy:
    """A plan that fits and gives the original's results in the session that it is for.

    The graph that a session runs is planned first. Where that has no plan, the file's own ops may have one: what the
    rewriting adds keeps default options from folding and packing constants. So only both searches prove that there is
    no plan. Where optimizers might break updates in place loose, both copies of the state are held. Where nothing
    else is found or at hand, the leanest plan is tried, unless nobody waits for it.
    """
    if request.at_hand is not None:
        return (yield from searched(request))
    witnessed = request.target.bears_witness(request.subject)
    limits = request.time.but_for_a_refusal(witnessed)
    found = yield from searched(replace(request, limits=limits))
    if not found.found:
        if witnessed:  # of the order that came nearest it is not known that its model passes
            found = replace(found, enough=held_as_it_is(request.subject, request.target.session))
        keep_refusal(request, found)
        if request.may_walk and not request.given_up:
            found = yield from last_resort(request, found)
    return replace(found, limits=request.limits)


def searched(request: PlanRequest) -> Policy:
    """What the search itself finds, without the plan of last resort."""
    again = request.target.has_own_graph(request.subject)
    limits = request.time.first_graph() if again else request.limits
    found = yield from of_graph(replace(request, limits=limits))
    if again and not found.found:
        if not request.late or found.status is Status.INFEASIBLE:
            other = yield from of_graph(replace(request, subject=request.subject.own))  # which takes long to make
            found = _or_else(found, other)
        else:
            found = unproved(found)
    if found.says(PlanNote.UNPINNED) and not request.late and (apart := request.subject.apart) is not None:
        held = Note(PlanNote.HELD_TWICE, (request.subject.held_once, *_which(request.subject)))
        other = yield from of_graph(replace(request, subject=apart))
        found = _or_else(found, other.noted(held))
    return replace(found, limits=request.limits)


def _or_else(first: Answer, second: Answer) -> Answer:
    """The answer of the second graph, where the first had no plan; nothing is impossible unless it is in both."""
    return second if second.found else judged(agreed(second, first), second.budget)


def _which(subject: Subject) -> tuple[str, str]:
    """An output that is held beside the input whose place it should take, and why."""
    assert subject.graph is not None
    return next(iter(subject.graph.in_place)), "optimizers might have it written before the old one was read by all"
