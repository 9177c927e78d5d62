"""Answers that need no search: models that meet their budget as they are, and budgets that nothing can meet.

Invariant: every op must run at least once, so running each once costs least; the plan says that and no more.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.model.graph import Graph
from remat_cli.model.sessions import Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.kinds import held, target_of
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate, Footprint
from solvers.notes import Note
from solvers.plan import Plan
from solvers.problem import Impossible, Limits, Result, Status
from solvers.schedule import Schedule


def fitting_already(subject: Subject, budget: int, method: str, limits: Limits, session: Session) -> Answer | None:
    """The model as it is, if it keeps to the budget in such a session.

    Where the ops of its graph are not the file's, because functions were written out, a model has to be written. It
    has nothing that the graph does not have.
    """
    subject = subject.as_given
    plan, outcome = subject.as_it_is()
    if outcome.peak > budget:
        return None
    cost, as_in_file = float(outcome.cost), subject.graph is None or not subject.graph.expanded
    result = Result(Status.OPTIMAL, plan.order(), cost, bound_any_order=cost)
    candidate = Candidate(subject, Schedule(result, plan, outcome))
    found = Answer(candidate, method, budget, 0.0, limits, untouched=as_in_file)
    if subject.graph is None:
        return found
    figures = _figures(subject, subject.graph, session)
    if target_of(session).counted(figures.promise) > budget:
        return None
    return replace(found, candidate=replace(candidate, footprint=figures), session=session)


def too_small(subject: Subject, budget: int, session: Session) -> bool:
    """Whether the memory held in any case exceeds the budget."""
    least = target_of(session).held_in_any_case
    return subject.graph is not None and least(subject) > budget and least(subject.own) > budget


def refused(subject: Subject, budget: int, method: str, limits: Limits, session: Session) -> Answer:
    """The answer without a plan for a budget that is too small; the model as it is gives a budget known to be
    enough."""
    target, (plan, outcome) = target_of(session), subject.as_it_is()
    result = Result(Status.UNKNOWN, plan.order(), notes=(Note(PlanNote.HELD_IN_ANY_CASE),))
    aside = target.aside(subject)
    least = target.held_in_any_case(subject.own) - aside
    result = replace(result, peak_bound=least).refuted(Impossible(budget - aside, least))
    return Answer(Candidate(subject, Schedule(result, plan, outcome)), method, budget, 0.0, limits, session)


def held_as_it_is(subject: Subject, session: Session) -> int:
    """The budget that the model needs without a plan: what is counted, and at least what a plan that is the model as
    it is has live."""
    subject = subject.as_given
    promise = None if subject.graph is None else _figures(subject, subject.graph, session).promise
    return held(subject.before().peak, session, promise)


def share_base(subject: Subject, session: Session) -> int:
    """The bytes that a relative budget is a share of: the live bytes of the file's order and the aside. Default options
    use the measured bytes instead."""
    target = target_of(session)
    if target.shares_of_all(subject):
        return held_as_it_is(subject, session)
    return subject.before().peak + target.aside(subject)


def _figures(subject: Subject, graph: Graph, session: Session) -> Footprint:
    target = target_of(session)

    def find() -> Footprint:
        return target.as_seen(subject, target.footprint(target.original(graph, subject.problem), target.aside(subject)))

    return subject.once(("figures", session), find)


def is_untouched(plan: Plan, subject: Subject) -> bool:
    """Whether the plan runs exactly what the model's file runs without it."""
    return subject.graph is not None and not subject.graph.expanded and is_as_it_is(plan, subject)


def is_as_it_is(plan: Plan, subject: Subject) -> bool:
    """Whether the plan runs each op of the graph once, in the graph's own order."""
    return len(plan.order()) == len(subject.nodes) and plan == subject.as_it_is()[0]
