"""Runs the stages in order: a subject and a budget go in, a schedule with all its figures comes out.

Invariant: every figure of an Answer is `simulate`'s or a solver's proved bound; nothing here computes cost or memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from remat_cli.errors import Usage, meant
from remat_cli.model.proved import PlanProof, Promise, overhead_of, time_of
from remat_cli.model.quantities import Budget
from remat_cli.model.session_bytes import session_bytes
from remat_cli.model.sessions import Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.kinds import held, target_of
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from solvers.notes import Note
from solvers.options import built, options_of
from solvers.placement.placed import Placement
from solvers.problem import Limits, Problem, Result, Solver, Status
from solvers.reductions.views import Contraction, after, reduced
from solvers.registry import METHODS
from solvers.schedule import Schedule, schedule
from solvers.simulate import Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of asking one method for one budget. It is impossible only by a proof of more than that.

    `candidate`: the plan, as far as it is one; where none was found, the order that comes nearest, if any.
    """

    candidate: Candidate
    method: str
    budget: int
    seconds: float
    limits: Limits
    session: Session | None = None  # the session that the plan is for, where there is a model
    untouched: bool = False  # the model fits without a plan
    cut: bool = False  # time or work ran out before the search ended
    asked: Mapping[str, Any] = field(default_factory=dict)  # the question, without the budget and the method
    said: Budget | None = None  # the budget in the user's own words
    whole: int | None = None  # the bytes that it is a share of, if it is one: of the graph that was asked about
    enough: int | None = None  # where there is no plan: a budget for which one was found
    cached: bool = False  # the answer came from the store, without a search

    def __post_init__(self) -> None:
        proof = self.schedule.result.impossible
        if proof is not None and proof.least + self.aside <= self.budget:
            raise ValueError(f"{proof} says nothing of {self.budget} bytes with {self.aside} beside")

    @property
    def aside(self) -> int:
        """Bytes that kernels take beside the allocator; the budget covers them too."""
        return target_of(self.session).aside(self.subject) if self.session else 0

    @property
    def itself(self) -> int | None:
        """What a session of the plan holds before any run, beside what the plan says; None where there is no model."""
        if self.subject.graph is None or self.schedule.plan is None:
            return None
        if self.promise is not None and self.promise.itself is not None and not self.untouched:
            return self.promise.itself
        return session_bytes(self.subject.graph, None if self.untouched else self.schedule.plan.order())

    @property
    def subject(self) -> Subject:
        return self.candidate.subject

    @property
    def schedule(self) -> Schedule:
        return self.candidate.schedule

    @property
    def baseline(self) -> Outcome:
        """The memory and cost of the model without a plan."""
        return self.subject.before()

    @property
    def promise(self) -> Promise | None:
        """The figures of the rewritten model."""
        return None if self.candidate.footprint is None else self.candidate.footprint.promise

    @property
    def placement(self) -> Placement | None:
        """The places of its values, where places are planned."""
        return None if self.candidate.footprint is None else self.candidate.footprint.placement

    @property
    def made_by(self) -> str | None:
        """The method that made the schedule, if not the one asked."""
        return self.candidate.made_by

    @property
    def cost(self) -> int:
        return self.candidate.cost

    @property
    def held(self) -> int:
        """The budget that its plan keeps to."""
        assert self.schedule.outcome is not None
        return held(self.schedule.outcome.peak, self.session, self.promise)

    def about(self, subject: Subject) -> Answer:
        """The same of another subject of which it is an answer too."""
        return replace(self, candidate=replace(self.candidate, subject=subject))

    def with_result(self, result: Result) -> Answer:
        """The same plan, with another word on how good it is."""
        return replace(self, candidate=self.candidate.with_result(result))

    def noted(self, *more: Note) -> Answer:
        """The answer with more notes; a note is added once only."""
        return replace(self, candidate=self.candidate.noted(*more))

    def given_up(self, *why: Note) -> Answer:
        """The answer without its plan, which must not be given, with the reason."""
        return self.with_result(self.schedule.result.without_plan()).noted(*why)

    @property
    def status(self) -> Status:
        return self.schedule.result.status

    @property
    def found(self) -> bool:
        return self.status.found

    @property
    def notes(self) -> tuple[Note, ...]:
        """All notes of the answer, those of its subject first."""
        return (*self.subject.notes, *self.schedule.result.notes)

    def says(self, kind: PlanNote) -> bool:
        """Whether the answer has a note of this kind."""
        return any(note.kind == kind for note in self.schedule.result.notes)

    @property
    def time(self) -> int:
        return time_of(self.promise, self.cost)

    @property
    def overhead(self) -> float | None:
        """The share of time that the plan adds."""
        return None if self.schedule.outcome is None else overhead_of(self.time, self.baseline.cost)

    @property
    def bound(self) -> int | None:
        """The bound in whole nanoseconds. Costs are integers, so it is rounded up, less what floating point may have
        added."""
        return _round_up(self.schedule.result.bound)

    @property
    def bound_any_order(self) -> int | None:
        """The cost that no schedule goes below, in whatever order it first computes the ops."""
        return _round_up(self.schedule.result.bound_any_order)

    @property
    def proved(self) -> PlanProof | None:
        """What is proved of the plan's cost."""
        outcome = self.schedule.outcome
        return None if outcome is None else PlanProof(outcome.cost, self.bound, self.bound_any_order)

    @property
    def gap(self) -> float | None:
        return None if self.proved is None else self.proved.gap

    @property
    def recomputed(self) -> int | None:
        """Recomputations in the plan. A view takes no time, so making one again does not count."""
        order = self.schedule.result.order
        if order is None:
            return None
        nodes = self.subject.problem.nodes
        return sum(1 for index in order if not nodes[index].views) - sum(1 for node in nodes if not node.views)


def _round_up(bound: float | None) -> int | None:
    return None if bound is None else math.ceil(bound - 1e-6 * max(1.0, abs(bound)))


def find_solver(method: str, options: Mapping[str, Any]) -> Solver:
    """The method with its own options bound."""
    check_options(method, options)
    return METHODS[method].load(**options)


def check_options(method: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the method does not have, or that mean nothing to it."""
    if method not in METHODS:
        raise Usage(f"there is no method '{method}'; {meant(method, METHODS)}")
    every = {name: {option.name: option.flag for option in options_of(METHODS[name].options)} for name in METHODS}
    flags = {name: flag for known in every.values() for name, flag in known.items()}
    if foreign := sorted(set(options) - every[method].keys()):
        names = ", ".join(flags.get(name, name) for name in foreign)
        having = ", ".join(name for name, known in every.items() if foreign[0] in known)
        raise Usage(f"{names} is not an option of '{method}'" + (f"; it is one of {having}" if having else ""))
    try:
        built(METHODS[method].options, options)
    except ValueError as error:
        raise Usage(f"{method}: {error}") from error


def answer(
    subject: Subject, budget: int, method: str, solver: Solver, limits: Limits, reordered: bool = False
) -> Answer:
    """Ask once for a schedule within `budget` bytes. `reordered`: the ops are first computed in an order that needs
    less memory than the model's."""
    reduce = partial(_reordered, budget, limits.seed) if reordered else reduced
    found = schedule(subject.problem, budget, solver, limits, reduce)
    seconds, cut = limits.clock.elapsed(), limits.clock.spent()
    one = Answer(Candidate(subject, found), method, budget, seconds, limits, cut=cut)
    return one.noted(Note(PlanNote.REORDERED)) if reordered else one


def _reordered(budget: int, seed: int, problem: Problem) -> Contraction:
    from solvers.annealing.reordering import reorder

    return after(reduced(problem), lambda smaller: reorder(smaller, budget, seed))
