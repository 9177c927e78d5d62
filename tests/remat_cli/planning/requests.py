"""Requests for small graphs, as the planning rooms pass them on, with plans made for them by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from remat_cli.model.sessions import STRICT, Session
from remat_cli.planning.kinds import target_of
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer, find_solver
from remat_cli.planning.search.attempt import Attempt, Checked, Policy
from remat_cli.planning.search.find import come_out
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from solvers.placement.fitting import Fitting
from solvers.problem import Limits, Result, Status
from solvers.reductions.views import reduced
from solvers.schedule import Schedule, evaluate
from tests.ample import ample
from tests.remat_cli.rewrite.plans import random_order


def request_for(path: Path, budget: int, session: Session = STRICT, method: str = "evict") -> PlanRequest:
    """What is asked by a search that is limited by work."""
    subject = load_subject(path, None, {}, session)
    limits = Limits(ample())
    return PlanRequest(subject, budget, method, find_solver(method, {}), limits, target_of(session))


def candidate_for(subject: Subject, seed: int | None = None) -> Candidate:
    """A plan that nobody searched for: the file's own order, or with `seed` one with ops computed again."""
    order = tuple(range(len(subject.problem.nodes)))
    if seed is not None:
        smaller = reduced(subject.problem)
        order = smaller.expand(random_order(smaller.problem, seed, 0.2))
    plan, outcome = evaluate(subject.problem, order)
    return Candidate(subject, Schedule(Result(Status.FEASIBLE, order), plan, outcome))


def nothing(_: object = None) -> Fitting:
    """Making an order fit, which comes to nothing."""
    yield
    return None


def within(request: PlanRequest, budget: int) -> PlanRequest:
    return replace(request, budget=budget)


def played(policy: Policy, come_out: Callable[[Attempt], Checked]) -> Answer:
    """What a policy answers where its attempts come out like that."""
    checked: Checked | None = None
    while True:
        try:
            attempt = next(policy) if checked is None else policy.send(checked)
        except StopIteration as ended:
            found: Answer = ended.value
            return found
        checked = come_out(attempt)


def alone(request: PlanRequest) -> Attempt:
    """The only attempt at a request."""
    return Attempt(request, request, request.budget)


def attempted(request: PlanRequest) -> Answer:
    """What comes of the request by the stages, without a second attempt."""
    found = come_out(alone(request)).found
    return replace(found, candidate=replace(found.candidate, model=None))
