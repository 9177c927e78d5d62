"""The last stage: a placed plan passes if its model makes the original's results, and holds what the budget allows.

Invariant: a plan that passes has a model that is not `astray`, with nothing `unpinned`. Where the original's measured
memory differs from the prediction, the model was run too and kept to the budget.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Checked
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.rewrite import Rewritten
from solvers.notes import Note

NAMED_VALUES = 5


def check(attempt: Attempt, found: Answer) -> Checked:
    """The answer with its model as made and measured; without its plan, and with the reason, where it does not pass."""
    asked, subject = attempt.asked, attempt.subject
    if not found.found or found.schedule.plan is None or not asked.target.bears_witness(subject):
        return Checked(found)
    candidate = found.candidate
    model = asked.trials_of(subject).model(subject, candidate)
    made = asked.with_model(candidate, model)
    if made is not None and asked.fits(made):
        ran = _as_run(asked, made, model)
        return Checked(replace(found, candidate=ran) if ran else found.given_up(Note(PlanNote.UNTRIED)))
    if made is not None and model.as_run is not None:
        return Checked(found.given_up(Note(PlanNote.FUSED, (asked.target.held_by(made),))))
    if model.unpinned and not model.astray:
        return Checked(found.given_up(Note(PlanNote.UNPINNED, (names(model.unpinned),))))
    around = model.astray or model.bare or model.shown
    return Checked(found.given_up(Note(PlanNote.ASTRAY, (names(around),))), around)


def tell(attempt: Attempt, found: Answer) -> None:
    """Tell of a plan that was met while a search goes on, if it passes and keeps to the budget that was asked for."""
    passed = check(attempt, found).found
    target = attempt.asked.target
    if not passed.found or (passed.promise and target.counted(passed.promise) > attempt.budget):
        return
    subject = passed.subject if attempt.searched is attempt.asked else attempt.subject
    attempt.asked.so_far.keep(replace(passed.about(subject), budget=attempt.budget))


def _as_run(request: PlanRequest, candidate: Candidate, model: Rewritten) -> Candidate | None:
    """The candidate with its measured figures, where models are tried; None if the model does not run in the time
    left."""
    if not request.target.tries_plans(request.subject):
        return candidate
    with request.so_far.times.part("trying models"):
        held = request.trials_of(candidate.subject).peaks(candidate, model, request.time.trial_seconds())
    if held is None:
        return None
    assert candidate.footprint is not None
    promise = request.target.with_peaks(candidate.promise, held)
    return replace(candidate, footprint=replace(candidate.footprint, promise=promise))


def names(found: Collection[str]) -> str:
    more = f" and {len(found) - NAMED_VALUES} more" if len(found) > NAMED_VALUES else ""
    return ", ".join(sorted(found)[:NAMED_VALUES]) + more
