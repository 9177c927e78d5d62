"""The stages in order: a subject and a budget in, a schedule with all its figures out.

Invariant: every figure of an Answer is `simulate`'s or a solver's proved bound; nothing here reckons cost or memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from remat_cli.errors import Usage
from remat_cli.planfile import Promise
from remat_cli.subject import Subject
from solvers.problem import Limits, Solver, Status
from solvers.registry import METHODS
from solvers.schedule import Schedule, baseline, schedule
from solvers.simulate import Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking one method for one budget."""

    subject: Subject
    method: str
    budget: int
    baseline: Outcome
    schedule: Schedule
    seconds: float
    limits: Limits
    promise: Promise | None = None  # what the rewritten model needs, where there is one

    @property
    def status(self) -> Status:
        return self.schedule.result.status

    @property
    def found(self) -> bool:
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)

    @property
    def overhead(self) -> float | None:
        """The share of time that recomputation adds."""
        if self.schedule.outcome is None:
            return None
        return self.schedule.outcome.cost / max(self.baseline.cost, 1) - 1

    @property
    def bound(self) -> int | None:
        """Costs are integers, so a bound can be rounded up, but for what floating point may have added to it."""
        bound = self.schedule.result.bound
        if bound is None:
            return None
        return math.ceil(bound - 1e-6 * max(1.0, abs(bound)))

    @property
    def gap(self) -> float | None:
        if self.bound is None or self.schedule.outcome is None:
            return None
        return max(0.0, (self.schedule.outcome.cost - self.bound) / max(self.bound, 1))

    @property
    def recomputed(self) -> int | None:
        """Computes beyond the first of each node; views made again take no time and do not count."""
        order = self.schedule.result.order
        if order is None:
            return None
        nodes = self.subject.problem.nodes
        return sum(1 for index in order if not nodes[index].views) - sum(1 for node in nodes if not node.views)


def find_solver(method: str, options: Mapping[str, Any]) -> Solver:
    """The method with its own options bound. Options that it does not have are a usage error."""
    if method not in METHODS:
        raise Usage(f"there is no method '{method}'; the methods are {', '.join(METHODS)}")
    foreign = sorted(set(options) - set(METHODS[method].options))
    if foreign:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
        raise Usage(f"{names} is not an option of '{method}'")
    return partial(METHODS[method].load(), **options) if options else METHODS[method].load()


def answer(subject: Subject, budget: int, method: str, solver: Solver, limits: Limits) -> Answer:
    """Ask for a schedule within `budget` bytes."""
    started = time.perf_counter()
    _, plain = baseline(subject.problem)
    found = schedule(subject.problem, budget, solver, limits)
    return Answer(subject, method, budget, plain, found, time.perf_counter() - started, limits)
