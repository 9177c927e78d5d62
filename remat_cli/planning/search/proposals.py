"""Proposes candidates: the search's own, plans it meets on the way, plans for less memory, and walks.

Whether an order can be placed is known only after the search, when little time is left. So orders that the search
reports are placed while it goes on (`met.py`).

Invariant: which orders are tried depends on what they cost, never on the clock, but in large searches that have time
instead of work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer, half
from remat_cli.planning.search.met import Met
from remat_cli.planning.search.proofs import agreed, unproved
from remat_cli.planning.search.repairs import walk
from remat_cli.planning.search.request import PlanRequest, candidate_of
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.time_plan import (
    LESS_SHARE,
    ONLINE_SEARCH_SHARE,
    PLACING_SECONDS,
    SEARCH_SHARE,
)
from solvers.notes import Note
from solvers.problem import Limits

LESS_ROUNDS = 6
LESS_STEP = 0.01  # share of the budget; the first search for less memory asks for this much less


def search(request: PlanRequest, met: Met) -> Answer:
    """Search with room left for the additions of the rewriting. Where that leads to no plan, search without that
    room."""
    left = request.limits.clock.left()
    online = request.target.online
    if online or request.limits.clock.most is not None:
        limits = request.limits.share(ONLINE_SEARCH_SHARE if online else SEARCH_SHARE)
    else:
        limits = request.limits.within(max(SEARCH_SHARE * left, left - PLACING_SECONDS))
    reserve = request.target.reserve(request.subject.problem)
    found = _search_as_fused(request, request.room - reserve, limits, met)
    if not found.found and online and not request.late:
        found = _search_as_fused(request, request.room - reserve, request.limits.share(SEARCH_SHARE), met)
    hopeless = (found.schedule.result.needed or 0) > request.most
    if found.found or request.most == request.room - reserve or request.late or hopeless:
        return found
    return _search_as_fused(request, request.most, limits, met)


def _search_as_fused(request: PlanRequest, budget: int, limits: Limits, met: Met) -> Answer:
    """Schedule each kernel that the runtime fuses by default as one op; op by op only if that leads to no plan."""
    subject = request.subject
    if not subject.problem.inner:
        return request.ask(subject, budget, met.listening(subject, limits), request.reorder)
    fused = request.ask(subject, budget, half(met.listening(subject, limits)), request.reorder)
    if fused.found:
        return fused
    if limits.clock.over():
        return unproved(fused)
    apart = subject.solving(replace(subject.problem, inner=frozenset()))
    found = request.ask(apart, budget, met.listening(apart, limits), request.reorder)
    return found.noted(Note(PlanNote.SCHEDULED_APART)) if found.found else agreed(found, fused)


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
