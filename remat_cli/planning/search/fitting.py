"""What a search hears of its orders from the session that they are for: which fit there, or what they led to that does.

A search that can go on beside that asks for it while it lasts (`Limits.fit`). Of any other the newest order is made to
fit at its end. Orders of a problem without a model fit as they are: each is told of at once.

Invariant: the best plan that fits was told of as soon as it was known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from functools import partial

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt
from remat_cli.planning.search.checking import tell
from remat_cli.planning.search.repairs import Repairing, repair, walk
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.time_plan import ORDER_SHARE
from solvers.clock import Clock
from solvers.coroutines import follow, run
from solvers.notes import Note
from solvers.problem import Limits, Progress, Result, Status
from solvers.schedule import Schedule, evaluate


class Fitted:
    """`best`: the cheapest plan that fits so far. `newest`: the last order that a search reported."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt, self.request = attempt, attempt.searched
        self.best: Candidate | None = None
        self.newest: tuple[Subject, Progress] | None = None
        self.times: Counter[tuple[int, ...]] = Counter()  # that an order was begun: each has other random numbers
        self.planned = self.enough = False  # the search that goes on knows a plan; it knows what is enough

    @property
    def asks(self) -> bool:
        """Whether a search asks which plans fit: only where it makes cost least, and any method's plan may answer."""
        request = self.request
        return request.subject.graph is not None and request.may_walk and not request.by_memory

    def told(self, subject: Subject, limits: Limits) -> Limits:
        """The limits of a search in that subject, so that it tells and asks here."""
        self.planned = self.enough = False
        clock = limits.clock if self.request.enough is None else limits.clock.until(lambda: self.enough)
        fit = partial(self.fit, subject) if self.asks else None
        return replace(limits, clock=clock, report=partial(self.hear, subject), fit=fit)

    def hurried(self, limits: Limits) -> Limits:
        """The same limits, but the search ends at half the time unless a plan is known by then."""
        clock = limits.clock.share(ORDER_SHARE)
        return replace(limits, clock=limits.clock.until(lambda: not self.planned and clock.over()))

    def hear(self, subject: Subject, progress: Progress) -> None:
        """Hear what a search in that subject says."""
        self.planned = self.planned or progress.cost is not None
        self.enough = self.enough or (self.request.enough is not None and self.request.enough(progress))
        self.request.tell(progress)
        if progress.order is None:
            return
        self.newest = self.request.so_far.order = subject, progress
        if subject.graph is None and (candidate := self.last()) is not None:
            self._tell(candidate)

    def last(self) -> Candidate | None:
        """The newest order, if its live bytes are within the budget and it costs less than what is at hand. That takes
        long to say of a large graph."""
        if self.newest is None:
            return None
        subject, progress = self.newest
        candidate = candidate_so_far(replace(self.request, subject=subject), progress)
        return candidate if self._is_worth(candidate) else None

    def fit(
        self, subject: Subject, order: tuple[int, ...], clock: Clock
    ) -> Generator[bool, None, tuple[int, ...] | None]:
        """The order made to fit, or in place of the first one that walks find. One that is no better than what is at
        hand is not tried."""
        request, first = replace(self.request, subject=subject), not self.times
        candidate = candidate_so_far(request, Progress(0.0, order=order))
        if candidate is None or not self._is_worth(candidate):
            return None
        whole = request.limits.clock.timed()
        other = yield from follow(self._begin(request, candidate, whole.in_turns(clock.work, clock.most)))
        if other is None and first:
            other = walk(request, candidate, whole)
        if other is None:
            return None
        if self.best is None or other.cost < self.best.cost:
            self.best = other
            self._tell(other)
        return other.order

    def finish(self, found: Answer) -> Candidate | None:
        """What the search found, made to fit. What was in vain is tried again, since more time may be left for it now,
        with other random numbers."""
        with self.request.so_far.times.part("placing"):
            return run(self._begin(self.request, found.candidate, self.request.time.repairing()))

    def _begin(self, request: PlanRequest, candidate: Candidate, clock: Clock) -> Repairing:
        """Work on the candidate."""
        number = self.times[candidate.order]
        self.times[candidate.order] += 1
        limits = replace(request.limits, seed=request.limits.seed + number)
        return repair(replace(request, limits=limits), candidate, clock)

    def _is_worth(self, candidate: Candidate | None) -> bool:
        """Whether it costs less than what is at hand."""
        most = self.request.at_hand
        return candidate is not None and (most is None or beyond(candidate) < most)

    def _tell(self, candidate: Candidate) -> None:
        noted = candidate.noted(Note(PlanNote.STILL_SEARCHING))
        tell(self.attempt, self.request.answer_of(noted, self.request.limits.clock.elapsed(), cut=True))


def beyond(plan: Candidate) -> int:
    """What it costs more than each op once."""
    return plan.cost - sum(node.cost for node in plan.subject.problem.nodes)


def candidate_so_far(request: PlanRequest, progress: Progress) -> Candidate | None:
    """The search's order so far as a candidate, if its live bytes are within the budget."""
    if progress.order is None:
        return None
    plan, outcome = evaluate(request.subject.problem, progress.order)
    if outcome.peak > request.room:
        return None
    result = Result(Status.FEASIBLE, progress.order, progress.bound, found_by=progress.by)
    return Candidate(request.subject, Schedule(result, plan, outcome))
