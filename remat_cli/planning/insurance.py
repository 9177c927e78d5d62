"""The cheapest plan that is known to fit as it really runs, while the search for a cheaper one still goes on.

A search ends with an order, and whether that can be placed is seen when little time is left. So the first order that it
reports is placed at once, or if it cannot be, one from walks that evict; and then each that costs a good deal less than
the last one tried.

Invariant: what is kept fits the budget in its session, and gives way only to what costs less; what is tried depends on
what the orders cost, never on the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from remat_cli.planning.asking import Fitting, noted
from remat_cli.planning.pipeline import Answer
from remat_cli.planning.placing import cost, placed, walked
from remat_cli.planning.subject import Subject
from solvers.problem import Limits, Progress, Result, Status
from solvers.schedule import Schedule, evaluate

LESS = 0.7  # of what the last one tried cost beyond the model as it is: what is worth to be placed
PREMIUM, LEAST = 0.1, 1.0  # of the time that is left, or seconds: for each
ON_THE_WAY = "the search was still going on"


@dataclass(slots=True)
class Insurance:
    """`tried`: what the last order that was placed, or was to be, cost beyond the model as it is; or a plan at hand."""

    asked: Fitting
    kept: Answer | None = None
    tried: int | None = None
    begun: bool = False

    def __post_init__(self) -> None:
        self.tried = self.asked.at_hand

    def insured(self, subject: Subject, limits: Limits) -> Limits:
        """The same limits, of a search in that subject whose orders are heard of here as well."""

        def report(progress: Progress) -> None:
            limits.report(progress)
            self._hear(subject, progress)

        return replace(limits, report=report)

    def _within_premium(self) -> Fitting:
        limits = self.asked.limits.silent()
        return replace(self.asked, limits=limits.within(max(PREMIUM * limits.clock.left(), LEAST)))

    def _hear(self, subject: Subject, progress: Progress) -> None:
        if progress.order is None or self.asked.late:
            return
        nodes = subject.problem.nodes
        beyond = sum(nodes[step].cost for step in progress.order) - sum(node.cost for node in nodes)
        if self.tried is not None and beyond > LESS * self.tried:
            return
        found = on_the_way(replace(self.asked, subject=subject), progress)
        if found is None:
            return
        first, self.begun, self.tried = not self.begun, True, beyond
        asked = self._within_premium()
        other = placed(asked, found)
        if other is None and first:
            other = walked(replace(asked, limits=self.asked.limits.silent()), found)
        if other is not None and (self.kept is None or cost(other) < cost(self.kept)):
            self.kept = other
            self.asked.keep(noted(other, ON_THE_WAY))


def on_the_way(asked: Fitting, progress: Progress) -> Answer | None:
    """What a search has found by now as an answer, if what is live at once is within the budget."""
    if progress.order is None:
        return None
    plan, outcome = evaluate(asked.subject.problem, progress.order)
    if outcome.peak > asked.room:
        return None
    result = Result(Status.FEASIBLE, progress.order, progress.bound)
    found, plain = Schedule(result, plan, outcome), asked.subject.before()
    return Answer(
        asked.subject, asked.method, asked.budget, plain, found, progress.seconds, asked.limits, asked.session, cut=True
    )
