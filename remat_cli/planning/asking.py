"""What is asked of which solver, for which kind of session.

Invariant: what a budget is held against is what the session's allocator counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from remat_cli.model.sessions import Session
from remat_cli.planning.holding import ALLOCATORS, Allocator, in_units
from remat_cli.planning.pipeline import Answer, Enough, answer, ending
from remat_cli.planning.subject import Subject
from solvers.placement.pattern import outputs_apart
from solvers.problem import Limits, Problem, Progress, Solver
from solvers.schedule import evaluate

LEAST = 0.5  # seconds: with less left, nothing more is asked


def nobody_keeps(_: Answer) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Fitting:
    """What is asked of which solver, and of which kind of session the answer is to be.

    `enough`: whether a search that knows this may end. `keep`: hears of each plan that fits as it really runs while
    there may still be a cheaper one. `apart`: whether outputs count from the beginning, as in later runs of a default
    session. `at_hand`: what the cheapest plan costs beyond the model as it is that fits, whatever is found.
    """

    subject: Subject
    budget: int
    method: str
    solver: Solver
    limits: Limits
    session: Session
    reorder: bool | None = False
    enough: Enough | None = None
    keep: Callable[[Answer], None] = nobody_keeps
    apart: bool = False
    at_hand: int | None = None

    @property
    def allocator(self) -> Allocator:
        return ALLOCATORS[self.session.allocator]

    @property
    def room(self) -> int:
        """What of the budget is the allocator's, inputs and weights included."""
        return self.budget - self.subject.aside(self.session)

    @property
    def late(self) -> bool:
        return self.limits.clock.over() or self.limits.clock.left() < LEAST

    def ask(self, subject: Subject, budget: int, limits: Limits, reorder: bool | None) -> Answer:
        """The method's answer, every size being what the allocator takes for it."""
        whole = subject.solving(self.taken(subject.problem))
        limits = ending(limits, self.enough) if self.enough else limits
        found = answer(whole, budget, self.method, self.solver, limits, reorder)
        session = self.session if subject.graph is not None else None
        found = replace(found, subject=subject, baseline=subject.before(), session=session)
        if not found.found or found.schedule.result.order is None:
            return found
        plan, outcome = evaluate(subject.problem, found.schedule.result.order)
        return replace(found, schedule=replace(found.schedule, plan=plan, outcome=outcome))

    def taken(self, problem: Problem) -> Problem:
        """The problem as the allocator takes it."""
        problem = in_units(problem, self.allocator.unit)
        return outputs_apart(problem) if self.apart else problem

    def fits(self, found: Answer) -> bool:
        return self.counted(found) <= self.budget

    def say(self, doing: str) -> None:
        self.limits.report(Progress(self.limits.clock.elapsed(), doing=doing))

    def counted(self, found: Answer) -> int:
        assert found.promise is not None
        return self.allocator.counted(found.promise)


def noted(found: Answer, note: str) -> Answer:
    """The answer with one more note, once."""
    result = found.schedule.result
    notes = tuple(dict.fromkeys((*result.notes, note)))
    return replace(found, schedule=replace(found.schedule, result=replace(result, notes=notes)))
