"""Certificates made and checked, on values: an answer's bounds proved again, and a proof held to a plan's problem.

Invariant: what is made has been checked. Checking asks no solver: the problem comes from the plan's own files, the rest
is `solvers.proof`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from remat_cli.errors import BadInput, Mismatch
from remat_cli.formats.certificatefile import digest
from remat_cli.model.proved import PlanProof
from remat_cli.model.sessions import Session
from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.planned import Planned
from solvers.clock import Clock
from solvers.problem import Grounds, Problem, Result, Status
from solvers.proof.certificate import Certificate, CostProof
from solvers.proof.check import check_cost, check_peak
from solvers.proof.timeline import Unproved


@dataclass(frozen=True, slots=True)
class Proved:
    """What follows from a certificate, in bytes and nanoseconds; None for what it does not speak of.

    `bound`: for schedules in the recorded order of first computes, `bound_any_order`: for all, each within its budget.
    `infeasible`: of `order` or `any order`, for which there is no schedule within the budget at all.
    """

    budget: int | None
    bound: int | None
    bound_any_order: int | None
    infeasible: str | None
    least_peak: int | None
    cost: int | None = None  # of the plan
    peak: int | None = None

    @property
    def gap(self) -> float | None:
        return None if self.cost is None else PlanProof(self.cost, self.bound).gap

    @property
    def gap_any_order(self) -> float | None:
        return None if self.cost is None else PlanProof(self.cost, None, self.bound_any_order).gap_any_order


def certify(subject: Subject, answer: Answer, session: Session, clock: Clock) -> tuple[Certificate, list[str]]:
    """What proves an answer's bounds, as far as there is time for it, and what must be said of it."""
    from solvers.prover.certify import prove_cost, prove_peak

    problem, result = _as_held(subject, session), answer.schedule.result
    node = result.peak_node
    peak = None if result.peak_bound is None else prove_peak(problem, result.peak_bound, node)
    said = [] if peak or result.peak_bound is None else [f"that peaks are at least {result.peak_bound} bytes"]
    hopeless = peak is not None and peak.bound > answer.budget
    proofs: list[CostProof] = []
    for grounds in () if hopeless else _grounds(answer):
        goal = _goal(result, grounds)
        share = clock.share(0.9 if grounds.order else 1.0)
        proofs.append(prove_cost(problem, grounds, goal, share))
        said += _short(proofs[-1], goal)
    named = replace(subject.named, problem=problem)
    return Certificate(digest(named), tuple(proofs), peak), said


def _as_held(subject: Subject, session: Session) -> Problem:
    """The problem that bounds are for: with every size as the session's allocator takes it."""
    return subject.problem if subject.graph is None else target_of(session).in_units(subject.problem)


def _grounds(answer: Answer) -> list[Grounds]:
    """Of bounds that say something of the answer's plan, and at least of all schedules."""
    result = answer.schedule.result
    order = result.order if answer.found else None
    found = [grounds for grounds in result.grounds if order is None or _keeps(order, grounds.order)]
    any_order = [grounds for grounds in found if not grounds.order]
    return found if any_order else [*found, Grounds(answer.budget, (), ())]


def _goal(result: Result, grounds: Grounds) -> int | None:
    bound = result.bound if grounds.order else result.bound_any_order
    return None if bound is None and result.status is Status.INFEASIBLE else ceil((bound or 0) - 0.5)


def _short(proof: CostProof, goal: int | None) -> list[str]:
    """By how much a proof falls short of what the search said."""
    of = "in this order" if proof.order else "in any order"
    if goal is None:
        return [] if proof.bound is None else [f"that there is no schedule {of}"]
    if proof.bound is None or proof.bound >= goal:
        return []
    return [f"the last {(goal - proof.bound) / max(goal, 1):.3%} of the bound {of}"]


def _keeps(order: Sequence[int], first: Sequence[int]) -> bool:
    """Whether the first computes of these nodes come in that order."""
    place: dict[int, int] = {}
    for step, node in enumerate(order):
        place.setdefault(node, step)
    return all(node in place for node in first) and sorted(first, key=place.__getitem__) == list(first)


def check_plan(certificate: Certificate, planned: Planned) -> Proved:
    """What a certificate proves of a plan. Raises Mismatch for what does not follow, or says nothing of the plan."""
    plan, outcome = planned.replayed()
    proved = check_certificate(certificate, planned.subject, planned.recorded.kind)
    if not all(_keeps(plan.order(), proof.order) for proof in certificate.costs):
        raise Mismatch("the certificate is for another order of first computes than the plan's")
    target = target_of(planned.recorded.kind)
    spare = target.aside(planned.subject)
    spare += 0 if planned.subject.graph is None else target.reserve(planned.subject.problem)
    for proof in certificate.costs:
        if proof.budget < planned.budget - spare:
            raise Mismatch(f"the certificate is for {proof.budget} bytes; the plan's budget is {planned.budget}")
    return replace(proved, cost=outcome.cost, peak=outcome.peak)


def check_certificate(certificate: Certificate, subject: Subject, session: Session) -> Proved:
    """What a certificate proves of a model or problem."""
    problem = _as_held(subject, session)
    if digest(replace(subject.named, problem=problem)) != certificate.problem:
        raise BadInput(f"the certificate is for another problem than that of {subject.path}, its costs and its session")
    try:
        for proof in certificate.costs:
            check_cost(problem, proof)
        if certificate.peak is not None:
            check_peak(problem, certificate.peak)
    except Unproved as error:
        raise Mismatch(f"the certificate does not prove what it claims: {error}") from error
    ordered = [proof for proof in certificate.costs if proof.order]
    free = [proof for proof in certificate.costs if not proof.order]
    impossible = [proof for proof in (*free, *ordered) if proof.bound is None]
    return Proved(
        budget=min((proof.budget for proof in certificate.costs), default=None),
        bound=_best([*ordered, *free]),
        bound_any_order=_best(free),
        infeasible=None if not impossible else "order" if impossible[0].order else "any order",
        least_peak=certificate.peak.bound if certificate.peak else None,
    )


def _best(proofs: Sequence[CostProof]) -> int | None:
    return max((proof.bound for proof in proofs if proof.bound is not None), default=None)
