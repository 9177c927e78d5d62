"""Converts an Answer to the plan file that records it, and a plan file back to an order.

Invariant: every figure in the file is the Answer's; nothing that changes from run to run is written.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.formats.planfile import PlanFile, Searched, places_of
from remat_cli.formats.program import name_program
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import STRICT
from remat_cli.notes.words import sentences
from remat_cli.planning.search.answer import Answer


def plan_file(answer: Answer) -> PlanFile:
    """The plan of an answer that found one."""
    outcome, plan, subject = answer.schedule.outcome, answer.schedule.plan, answer.subject
    assert outcome is not None
    assert plan is not None
    kind = answer.session or STRICT
    return PlanFile(
        model=subject.source,
        costs=subject.costs,
        dims=dict(subject.dims),
        budget=answer.budget,
        method=answer.method,
        seed=answer.limits.seed,
        limits=Searched(answer.limits.clock.seconds, answer.limits.gap, answer.limits.clock.most),
        status=answer.status.value,
        bound=answer.bound,
        bound_any_order=answer.bound_any_order,
        peak=outcome.peak,
        cost=outcome.cost,
        baseline_peak=answer.baseline.peak,
        baseline_cost=answer.baseline.cost,
        resident=subject.problem.resident,
        promises=replace(answer.promise or Promise(strict=outcome.peak), itself=answer.itself),
        program=name_program(plan, subject.nodes, subject.values),
        notes=sentences(answer.notes),
        session=kind.name,
        graph=subject.graph_planned,
        pieces=subject.pieces,
        in_place=dict(subject.graph.in_place) if subject.graph else {},
        placement=places_of(answer.placement) if answer.placement else None,
        asked=dict(answer.asked),
    )
