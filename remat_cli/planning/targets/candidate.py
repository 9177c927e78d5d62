"""A plan on its way to being the answer: an order, and what is known of the model that runs it.

Invariant: each part is made once and belongs to the same order; a candidate that has a footprint is not repaired again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from remat_cli.model.proved import Promise
from remat_cli.planning.subjects.subject import Subject
from remat_cli.rewrite import Rewritten
from solvers.notes import Note
from solvers.placement.placed import Placement
from solvers.plan import Plan
from solvers.problem import Result
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
    model: Rewritten | None = field(default=None, compare=False, repr=False)
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
    def peak(self) -> int:
        assert self.schedule.outcome is not None
        return self.schedule.outcome.peak

    @property
    def unplaced(self) -> Candidate:
        """The same order, whose model is not made yet."""
        return replace(self, model=None, footprint=None)

    @property
    def promise(self) -> Promise:
        assert self.footprint is not None
        return self.footprint.promise

    def with_order(self, order: tuple[int, ...]) -> Candidate:
        """The candidate that runs another order, whose model is not made yet."""
        plan, outcome = evaluate(self.subject.problem, order)
        result = replace(self.schedule.result, order=order)
        schedule = replace(self.schedule, plan=plan, outcome=outcome, result=result)
        return replace(self.unplaced, schedule=schedule)

    def with_result(self, result: Result) -> Candidate:
        """The same plan, with another word on how good it is."""
        return replace(self, schedule=replace(self.schedule, result=result))

    def noted(self, *more: Note) -> Candidate:
        """The candidate with more notes; a note is added once only."""
        result = self.schedule.result
        return self.with_result(replace(result, notes=tuple(dict.fromkeys((*result.notes, *more)))))
