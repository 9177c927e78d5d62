"""Proposes candidates: the search's own, plans it meets on the way, plans for less memory, and walks.

Whether an order can be placed is known only after the search, when little time is left. So the first order that the
search reports is placed at once, or replaced by a walk if it cannot be. After that, each order is placed that costs
much less than the last one tried.

Invariant: which orders are tried depends on what they cost, never on the clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import process_time

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer, half
from remat_cli.planning.search.request import PlanRequest, candidate_of
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.targets.repairs import repair, walk
from remat_cli.planning.time_plan import (
    IDLE_SECONDS,
    IDLE_SHARE,
    LESS_SHARE,
    ONLINE_SEARCH_SHARE,
    PLACING_SECONDS,
    PREMIUM_SECONDS,
    PREMIUM_SHARE,
    SEARCH_SHARE,
)
from solvers.notes import Note
from solvers.problem import Limits, Progress, Result, Status
from solvers.schedule import Schedule, evaluate

LARGE_NODES = 3000  # from this size on, a plan is not placed at once
IDLE_GAIN = 0.0005  # share of a plan's cost; a smaller gain does not count
WORTH_PLACING = 0.7  # share of the extra cost of the last order tried; an order must cost less to be placed
LESS_ROUNDS = 6
LESS_STEP = 0.01  # share of the budget; the first search for less memory asks for this much less


def search(request: PlanRequest, met: Met) -> Answer:
    """Search with room left for the additions of the rewriting. Where that leads to no plan, search without that
    room."""
    left = request.limits.clock.left()
    online = request.target.online
    if online or request.limits.clock.work is not None:
        limits = request.limits.share(ONLINE_SEARCH_SHARE if online else SEARCH_SHARE)
    else:
        limits = request.limits.within(max(SEARCH_SHARE * left, left - PLACING_SECONDS))
    reserve = request.target.reserve(request.subject.problem)
    found = _search_as_fused(request, request.room - reserve, limits, met)
    if not found.found and online and not request.late:
        found = _search_as_fused(request, request.room - reserve, request.limits.share(SEARCH_SHARE), met)
    hopeless = not request.subject.problem.inner and (found.schedule.result.peak_bound or 0) > request.room
    if found.found or not reserve or request.late or hopeless:
        return found
    return _search_as_fused(request, request.room, limits, met)


def _search_as_fused(request: PlanRequest, budget: int, limits: Limits, met: Met) -> Answer:
    """Schedule each kernel that the runtime fuses by default as one op; op by op only if that leads to no plan."""
    subject = request.subject
    if not subject.problem.inner:
        return request.ask(subject, budget, _until_enough(request, met.listening(subject, limits)), request.reorder)
    found = request.ask(subject, budget, half(met.listening(subject, limits)), request.reorder)
    if found.found or limits.clock.over():
        return found
    apart = subject.solving(replace(subject.problem, inner=frozenset()))
    found = request.ask(apart, budget, met.listening(apart, limits), request.reorder)
    return found.noted(Note(PlanNote.SCHEDULED_APART)) if found.found else found


def _until_enough(request: PlanRequest, limits: Limits) -> Limits:
    """The limits, or where a large search that has time instead of work may end earlier."""
    timed = not request.target.online and limits.clock.work is None
    return until_idle(limits) if timed and len(request.subject.problem.nodes) > LARGE_NODES else limits


def until_idle(limits: Limits) -> Limits:
    """The same limits, but the search ends when it has found nothing much cheaper for long. Placing needs the time.

    Processor time is counted, less that of who hears the reports. So a search is not idle while the machine is busy, or
    while a plan is placed that it reported.
    """
    cheapest, since, aside = math.inf, 0.0, process_time()

    def report(progress: Progress) -> None:
        nonlocal cheapest, since, aside
        begun = process_time()
        limits.report(progress)
        aside += process_time() - begun
        if progress.cost is not None and progress.cost < cheapest * (1 - IDLE_GAIN):
            cheapest, since = progress.cost, process_time() - aside

    def idle() -> bool:
        return cheapest < math.inf and process_time() - aside > since + max(IDLE_SECONDS, IDLE_SHARE * since)

    return replace(limits, report=report, clock=limits.clock.unless(idle))


@dataclass(frozen=True, slots=True)
class Proposal:
    """An alternative to the candidate that was found. `rank`: among candidates of one cost the lowest rank is taken."""

    candidate: Candidate
    note: Note
    rank: int


def alternatives(request: PlanRequest, first: Answer, met: Candidate | None) -> Iterator[Proposal]:
    """Alternatives to a plan that cannot be placed, up to the first plan for less memory that can be.

    The plans met on the way and those from walks are placed already.
    """
    if met is not None:
        yield Proposal(met, Note(PlanNote.MET_EARLIER), 1)
    if not first.found:
        return
    if met is None and (walked := walk(request, candidate_of(first))):
        yield Proposal(walked, Note(PlanNote.WALKED), 2)
    yield from _make_for_less(request, first)


def _make_for_less(request: PlanRequest, first: Answer) -> Iterator[Proposal]:
    """Plans for less and less memory; each step is twice the last.

    The first step assumes that a plan for less memory exceeds its budget by the same share as the first plan does.
    """
    step = LESS_STEP * request.budget
    needed = request.counted(request.place(candidate_of(first), request.limits.clock.within(0)))
    wanted = min(request.room - step, request.room * request.budget / needed)
    for _ in range(LESS_ROUNDS):
        if request.late or wanted <= first.subject.problem.resident:
            return
        found = _ask_for(request, first, int(wanted))
        if not found.found:
            return
        yield Proposal(candidate_of(found), Note(PlanNote.MADE_FOR_LESS), 0)
        step *= 2
        wanted -= step


def _ask_for(request: PlanRequest, first: Answer, budget: int) -> Answer:
    """A plan for a smaller budget, with the order of first computes that led to the first plan."""
    quiet = request.limits.silent().share(LESS_SHARE)
    again = bool(request.reorder) or first.says(PlanNote.REORDERED)
    found = request.ask(first.subject, budget, quiet, again)
    if found.found or again or request.reorder is not None or request.late:
        return found
    return request.ask(first.subject, budget, quiet, True)


@dataclass(slots=True)
class Met:
    """The cheapest plan known to fit in its session, while the search for a cheaper one still goes on.

    `tried`: the extra cost, over the model without a plan, of the last order that was placed or was to be; or that of a
    known plan.
    """

    request: PlanRequest
    best: Candidate | None = None
    tried: int | None = None
    begun: bool = False

    def __post_init__(self) -> None:
        self.tried = self.request.at_hand

    def listening(self, subject: Subject, limits: Limits) -> Limits:
        """The same limits, for a search in that subject; this object hears of its orders too."""

        def report(progress: Progress) -> None:
            limits.report(progress)
            self._hear(subject, progress)

        return replace(limits, report=report)

    def _hear(self, subject: Subject, progress: Progress) -> None:
        if progress.order is None or self.request.late:
            return
        nodes = subject.problem.nodes
        beyond = sum(nodes[step].cost for step in progress.order) - sum(node.cost for node in nodes)
        if self.tried is not None and beyond > WORTH_PLACING * self.tried:
            return
        candidate = candidate_so_far(replace(self.request, subject=subject), progress)
        if candidate is None:
            return
        first, self.begun, self.tried = not self.begun, True, beyond
        limits = self.request.limits.silent()
        premium = limits.within(max(PREMIUM_SHARE * limits.clock.left(), PREMIUM_SECONDS))
        other = repair(replace(self.request, limits=premium), candidate)
        if other is None and first:
            other = walk(replace(self.request, limits=limits), candidate)
        if other is not None and (self.best is None or other.cost < self.best.cost):
            self.best = other
            noted = other.noted(Note(PlanNote.STILL_SEARCHING))
            self.request.keep(self.request.answer_of(noted, progress.seconds, cut=True))


def candidate_so_far(request: PlanRequest, progress: Progress) -> Candidate | None:
    """The search's order so far as a candidate, if its live bytes are within the budget."""
    if progress.order is None:
        return None
    plan, outcome = evaluate(request.subject.problem, progress.order)
    if outcome.peak > request.room:
        return None
    return Candidate(request.subject, Schedule(Result(Status.FEASIBLE, progress.order, progress.bound), plan, outcome))
