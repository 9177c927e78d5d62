"""Offers plans that are known already as candidates, so that a larger budget never leads to a dearer plan.

Invariant: a known plan stands in only if it is cheaper than the plan found, and keeps to the budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from remat_cli.errors import BadInput
from remat_cli.formats import planfile
from remat_cli.formats.planfile import PlanFile
from remat_cli.formats.program import number_program
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt
from remat_cli.planning.search.find import come_out
from remat_cli.planning.search.measured import foreseen
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.in_pieces import scheduled_by
from remat_cli.planning.targets.candidate import Candidate
from solvers.notes import Note
from solvers.plan import IllegalOrder
from solvers.problem import Result, Status
from solvers.schedule import Schedule, evaluate
from solvers.simulate import IllegalPlan

BESIDE, HEAD = 64, 4096  # how many plans of a folder are read, and how many bytes of each to find its model


def known_before(destination: Path, sha256: str) -> dict[str, Any]:
    """Plans of the model in the folder of `destination`, and the one that stands at `destination` itself."""
    found = plans_beside(destination, sha256)
    return {"earlier": tuple(found.values()), "stands": found.get(destination)}


def plans_beside(destination: Path, sha256: str) -> dict[Path, PlanFile]:
    """Plans of the same model in the folder of a new plan, the one that it replaces among them."""
    found: dict[Path, PlanFile] = {}
    for path in sorted({destination, *destination.parent.glob("*.plan.json")})[:BESIDE]:
        if not path.is_file():  # Reading a pipe would block.
            continue
        try:
            with path.open(encoding="utf-8") as file:
                of_this = sha256 in file.read(HEAD)
            found |= {path: planfile.read(path)} if of_this else {}
        except (BadInput, OSError, UnicodeDecodeError):
            continue
    return found


def cheaper_known(request: PlanRequest, found: Answer, plans: Iterable[PlanFile]) -> Answer:
    """The answer found, or the cheapest of these plans that fits and costs less; plans of other models are ignored."""
    for plan in plans:
        other = _as_answer(request, found, plan) if plan.model.sha256 == request.subject.source.sha256 else None
        if other is not None:
            found = other
    return found


def cheapest_known(request: PlanRequest, plans: Iterable[PlanFile]) -> Answer | None:
    """The cheapest of these plans that fits, taken before any search; only that one is given its places."""
    nothing = Schedule(Result(Status.UNKNOWN, None), None, None)
    start = request.answer_of(Candidate(request.subject, nothing), 0.0, cut=True)
    for plan in sorted(plans, key=lambda plan: plan.cost):
        if plan.peak <= request.budget and (found := cheaper_known(request, start, [plan])).found:
            return found
    return None


def _as_answer(request: PlanRequest, found: Answer, known: PlanFile) -> Answer | None:
    """The known plan as an answer, if it fits and costs less than the plan found. It may be of the file's own ops,
    where others are planned first, or of ops in other pieces."""
    pieces = found.subject.pieces
    try:
        request = replace(request, subject=scheduled_by(known, request.subject))
        order = number_program(known.program, request.subject.nodes, request.subject.values).order()
        plan, outcome = evaluate(request.subject.problem, order)
    except (BadInput, IllegalOrder, IllegalPlan):
        return None
    if outcome.peak > request.budget or (found.found and outcome.cost >= found.cost):
        return None
    least = found.schedule.result.bound_any_order if request.subject.pieces == pieces else None
    close = least is not None and outcome.cost <= (1 + request.limits.gap) * least
    status = Status.OPTIMAL if close else Status.FEASIBLE
    grounds = tuple(one for one in found.schedule.result.grounds if not one.order) if least is not None else ()
    result = Result(status, order, least, (Note(PlanNote.KNOWN_BEFORE),), bound_any_order=least, grounds=grounds)
    other = Candidate(request.subject, Schedule(result, plan, outcome), known.method)
    if request.subject.graph is None:
        return replace(found, candidate=other)
    placed = tried_alone(request, replace(found, candidate=_with_its_places(request, other, known)))
    dearer = placed is not None and found.found and placed.cost >= found.cost  # by what repairs made of it
    return None if dearer else placed


def tried_alone(request: PlanRequest, found: Answer) -> Answer | None:
    """An answer with a plan from elsewhere, if that fits once its model is made and run; None if not. The plan may have
    its places already, where they are known."""
    asked = foreseen(request)
    passed = come_out(Attempt(asked, asked, request.budget, found)).found
    return replace(passed, budget=request.budget) if passed.found and request.fits(passed.candidate) else None


def _with_its_places(request: PlanRequest, candidate: Candidate, known: PlanFile) -> Candidate:
    """The candidate with the places that the plan file gives, because finding such places may have taken long."""
    if known.placement is None or known.session != request.target.session.name:
        return candidate
    fits = request.target.place_as_recorded(candidate, known.placement)
    return fits if fits.footprint is not None and request.fits(fits) else candidate
