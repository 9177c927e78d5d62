"""A plan on its way to being the answer: an order, and what is known of the model that runs it.

Invariant: each part is made once and belongs to the same order; a candidate that has a footprint is not repaired again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from remat_cli.model.promise import Promise
from remat_cli.planning.subjects.subject import Subject
from remat_cli.rewrite import Rewritten
from solvers.notes import Note
from solvers.placement.largest import Placement
from solvers.plan import Plan
from solvers.schedule import Schedule, evaluate


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a session's allocator must hold for a model. `placement`: where each value lies, if that is planned."""

    promise: Promise
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """`model`: the plan's model as it is rewritten for the target. `footprint`: what that model holds. None: not made
    yet.

    `made_by`: the method that made the order, if not the method asked.
    """

    subject: Subject
    schedule: Schedule
    made_by: str | None = None
    model: Rewritten | None = None
    footprint: Footprint | None = None

    @property
    def plan(self) -> Plan:
        assert self.schedule.plan is not None
        return self.schedule.plan

    @property
    def order(self) -> tuple[int, ...]:
        return self.plan.order()

    @property
    def cost(self) -> int:
        assert self.schedule.outcome is not None
        return self.schedule.outcome.cost

    @property
    def promise(self) -> Promise:
        assert self.footprint is not None
        return self.footprint.promise

    def with_order(self, order: tuple[int, ...]) -> Candidate:
        """The candidate that runs another order, whose model is not made yet."""
        plan, outcome = evaluate(self.subject.problem, order)
        result = replace(self.schedule.result, order=order)
        schedule = replace(self.schedule, plan=plan, outcome=outcome, result=result)
        return replace(self, schedule=schedule, model=None, footprint=None)

    def noted(self, note: Note) -> Candidate:
        """The candidate with one more note; a note is added once only."""
        result = self.schedule.result
        notes = tuple(dict.fromkeys((*result.notes, note)))
        return replace(self, schedule=replace(self.schedule, result=replace(result, notes=notes)))
