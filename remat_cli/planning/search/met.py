"""Plans that a search meets on the way. It has a thread of its own, and who asked for it places its orders meanwhile.

Orders of a problem without a model need no places: each is told of at once. Of a model, the first order that the search
reports is placed at once, or replaced by a walk if it cannot be. After that, each order is placed that costs much less
than the last one tried. A search that has time does not wait for that: the newest order is also placed whenever nothing
newer comes for a while, and is given up for one that is far better, since on a busy machine an early one can take all
of the time. A search that has work waits, so that its answer does not depend on the machine.

Invariant: what the search finds is the same, whatever is placed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Condition

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt
from remat_cli.planning.search.checking import tell
from remat_cli.planning.search.repairs import repair, walk
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.time_plan import IDLE_SECONDS, ORDER_SHARE
from solvers.notes import Note
from solvers.problem import Limits, Progress, Result, Status
from solvers.schedule import Schedule, evaluate

CHEAPER = 0.99  # of the extra cost of the order that is being placed: for less of a gain it is not given up
FAR_CHEAPER = 0.5  # of the same while the search goes on: each placing that is given up at least halves what is left
WORTH_PLACING = 0.7  # share of the extra cost of the last order tried; an order must cost less to be placed


class Met:
    """The best plan known to fit in its session, while the search for a better one still goes on.

    `tried`: the extra cost, over the model without a plan, of the last order that was placed or was to be; or that of a
    known plan. `bare`: no places are needed. `beside`: the search does not wait for them.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt, self.request = attempt, attempt.searched
        self.best: Candidate | None = None
        self.tried = self.request.at_hand
        self.begun = False
        self.unplaced: Candidate | None = None  # the last that had no places
        self.bare = self.request.subject.graph is None
        self.beside = not self.bare and not self.request.time.by_work
        self.planned = False  # the search that goes on knows a plan
        self.news = Condition()
        self.newest: tuple[Subject, Progress] | None = None  # the order that is to be placed next
        self.waits = False  # the search waits until that is placed
        self.closed = self.left = False  # the search is over; nobody waits for it any more

    def while_it_goes_on(self, search: Callable[[PlanRequest], Answer]) -> Answer:
        """What the search finds. Its orders are placed here; what goes wrong on either side is raised, and ends it."""
        clock = self.request.limits.clock.unless(lambda: self.left)
        asked = replace(self.request, limits=replace(self.request.limits, clock=clock))
        thread = ThreadPoolExecutor(1, "search")
        found = thread.submit(copy_context().run, search, asked)  # who hears of it may look at variables of a context
        found.add_done_callback(self._close)
        thread.shutdown(wait=False)
        try:
            while (order := self._next()) is not None:
                self.place(*order)
                self._let_go_on()
        finally:
            self.left = True
            self._let_go_on()
        return found.result()

    def _close(self, _: Future[Answer]) -> None:
        with self.news:
            self.closed = True
            self.news.notify_all()

    def heard(self, subject: Subject, limits: Limits) -> Limits:
        """The limits of a search in that subject, so that it is heard here."""
        self.planned = False
        return replace(limits, report=partial(self.hear, subject))

    def hurried(self, limits: Limits) -> Limits:
        """The same limits, but the search ends at half the time unless a plan is known by then."""
        clock = limits.clock.share(ORDER_SHARE)
        return replace(limits, clock=limits.clock.until(lambda: not self.planned and clock.over()))

    def hear(self, subject: Subject, progress: Progress) -> None:
        """Hear what a search in that subject says, in its thread."""
        self.planned = self.planned or progress.cost is not None
        self.request.limits.report(progress)
        if progress.order is None:
            return
        self.request.so_far.order = subject, progress
        if self.bare or (not self.request.late and self._is_heard(subject, progress)):
            self._hand_over(subject, progress)

    def _is_heard(self, subject: Subject, progress: Progress) -> bool:
        """Whether the order is to be placed, if nothing newer comes."""
        most = self.request.at_hand
        better = most is None or _beyond(subject, progress) < most
        return self._is_worth(subject, progress) or (self.beside and better)

    def _is_worth(self, subject: Subject, progress: Progress) -> bool:
        """Whether the order is to be placed as soon as may be."""
        return self.tried is None or _beyond(subject, progress) <= WORTH_PLACING * self.tried

    def _hand_over(self, subject: Subject, progress: Progress) -> None:
        with self.news:
            self.newest, self.waits = (subject, progress), not self.beside
            self.news.notify_all()
            self.news.wait_for(lambda: self.left or not self.waits)

    def _let_go_on(self) -> None:
        with self.news:
            self.waits = False
            self.news.notify_all()

    def _next(self) -> tuple[Subject, Progress] | None:
        """The first order, or the newest once nothing newer comes or the search waits; None at the end."""
        with self.news:
            while True:
                self.news.wait_for(lambda: self.closed or self.newest is not None)
                order = self.newest
                if self.closed or order is None:
                    return None
                if self.waits or self._is_worth(*order) or not self.news.wait(IDLE_SECONDS):
                    self.newest = None
                    return order

    def is_outdated(self) -> bool:
        """Whether there is a far better order than the one that is being placed, or any better one once the search has
        ended."""
        if self.newest is None or self.tried is None:
            return False
        if self.request.by_memory:
            return self.closed
        return _beyond(*self.newest) <= (CHEAPER if self.closed else FAR_CHEAPER) * self.tried

    def instead_of(self, found: Answer) -> Candidate | None:
        """A plan that was placed beside the search and is as good as what that found, where any method's plan may
        answer: other methods may seek something else than to cost less."""
        if not (self.beside and self.request.may_walk and self.best is not None and found.found):
            return None
        return self.best if self._worth(self.best) <= self._worth(found) else None

    def gave_up(self, found: Answer) -> bool:
        """Whether the plan that the search found is the one that could not be placed beside it."""
        return self.unplaced is not None and self.unplaced.plan == found.schedule.plan

    def _worth(self, plan: Candidate | Answer) -> int:
        """What the search makes least."""
        outcome = plan.schedule.outcome
        assert outcome is not None
        return outcome.peak if self.request.by_memory else outcome.cost

    def place(self, subject: Subject, progress: Progress) -> None:
        """Place an order, or walk instead if it is the first; one of a problem without a model needs no place."""
        candidate = candidate_so_far(replace(self.request, subject=subject), progress)
        if candidate is None:
            return
        if self.bare:
            self._tell(candidate, progress)
            return
        first, self.begun, self.tried = not self.begun, True, _beyond(subject, progress)
        limits, stopped = self.request.limits.silent(), self.request.limits.clock.stopped()
        if self.beside:
            limits = replace(limits, clock=limits.clock.unless(self.is_outdated))
        other = repair(replace(self.request, limits=limits), candidate)
        if other is None and self.beside and self.is_outdated():
            self.begun = not first  # in place of a first order, the newest is placed at once
            return
        cut_off = self.request.limits.clock.stopped() and not stopped  # an interrupt, which says nothing of its places
        self.unplaced = candidate if other is None and not cut_off else None
        if other is None and first:
            other = walk(replace(self.request, limits=limits), candidate)
        if other is not None and (self.best is None or self._worth(other) < self._worth(self.best)):
            self.best = other
            self._tell(other, progress)

    def _tell(self, candidate: Candidate, progress: Progress) -> None:
        noted = candidate.noted(Note(PlanNote.STILL_SEARCHING))
        tell(self.attempt, self.request.answer_of(noted, progress.seconds, cut=True))


def _beyond(subject: Subject, progress: Progress) -> int:
    """The extra cost of an order."""
    nodes = subject.problem.nodes
    return sum(nodes[step].cost for step in progress.order or ()) - sum(node.cost for node in nodes)


def candidate_so_far(request: PlanRequest, progress: Progress) -> Candidate | None:
    """The search's order so far as a candidate, if its live bytes are within the budget."""
    if progress.order is None:
        return None
    plan, outcome = evaluate(request.subject.problem, progress.order)
    if outcome.peak > request.room:
        return None
    return Candidate(request.subject, Schedule(Result(Status.FEASIBLE, progress.order, progress.bound), plan, outcome))
