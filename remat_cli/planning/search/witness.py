"""Witnesses plans before they are given: by the original's kernels, whatever optimizers do, and by a run.

Invariant: an answer that found a plan has a model that is not `astray`, with nothing `unpinned`. Where the original's
measured memory differs from the prediction, the model was run too and kept to the budget. Ops that optimizers treat
differently once copied, and that cannot be let be, run once; a note names them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.loop import find_fitting
from remat_cli.planning.search.proofs import unproved
from remat_cli.planning.search.readings import foreseen
from remat_cli.planning.search.repairs import repair
from remat_cli.planning.search.request import PlanRequest, candidate_of
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.targets.trials import Trials
from remat_cli.planning.time_plan import TRIAL_GRACE_SECONDS, TRIAL_SECONDS, WITNESSED_ONCE_SHARE, WITNESSED_SHARE
from remat_cli.rewrite import Rewritten
from solvers.notes import Note
from solvers.problem import Limits

NAMED_VALUES = 5


def find_witnessed(request: PlanRequest, trials: Trials) -> Answer:
    """A plan that fits and is witnessed. After a plan that goes astray, the next one runs the ops around that place
    once."""
    subject = request.subject
    if not request.target.bears_witness(subject):
        return find_fitting(request)
    once = set[str]()

    def keep(found: Answer) -> None:
        witnessed = witness(request, subject, _candidate_from(found), trials)
        if witnessed is not None:
            request.keep(replace(found.with_candidate(witnessed, request.target.session), subject=subject))

    while True:
        now = replace(request, subject=run_once(subject, once), limits=limits_of_one_search(request), keep=keep)
        found = find_fitting(now)
        if not found.found or found.schedule.plan is None:
            return _as_of(subject, found, once)
        candidate = _candidate_from(found)
        model = trials.model(subject, candidate)
        if (made := _as_made(request, candidate, model)) is not None:
            ran = _as_run(request, made, model, trials)
            return (
                _as_of(subject, found.with_candidate(ran, request.target.session), once)
                if ran
                else found.given_up(Note(PlanNote.UNTRIED))
            )
        if model.unpinned and not model.astray:
            return found.given_up(Note(PlanNote.UNPINNED, (_names(model.unpinned),)))
        around = model.astray or model.bare or model.shown
        if now.late or len(once) == len(subject.nodes):
            return found.given_up(Note(PlanNote.ASTRAY, (_names(around),)))
        once = more_once(subject, around, once)


def limits_of_one_search(request: PlanRequest) -> Limits:
    """The limits of one search, where it may have to be done again."""
    seldom = request.target.seldom_asks_again(request.subject)
    return request.limits.share(WITNESSED_ONCE_SHARE if seldom else WITNESSED_SHARE)


def witness_alone(request: PlanRequest, found: Answer, candidate: Candidate | None = None) -> Answer | None:
    """A plan from elsewhere as an answer, if it fits once its model is made and run; None if not.

    `candidate`: the plan with its places, where they are known.
    """
    asked = foreseen(request)
    repaired = repair(asked, candidate or candidate_of(found))
    if repaired is None:
        return None
    if not request.target.bears_witness(request.subject):
        return found.with_candidate(repaired, request.target.session)
    witnessed = witness(asked, repaired.subject, repaired, request.trials_of(repaired.subject))
    if witnessed is None or not request.fits(witnessed):
        return None
    return replace(found.with_candidate(witnessed, request.target.session), budget=request.budget)


def witness(request: PlanRequest, subject: Subject, candidate: Candidate, trials: Trials) -> Candidate | None:
    """The candidate with its model as made and measured; None if it does not fit or does not run."""
    model = trials.model(subject, candidate)
    made = _as_made(request, candidate, model)
    return None if made is None else _as_run(request, made, model, trials)


def _as_made(request: PlanRequest, candidate: Candidate, model: Rewritten) -> Candidate | None:
    """The candidate with its predicted figures, if those fit and its kernels are the original's."""
    made = request.with_model(candidate, model)
    return made if made is not None and request.fits(made) else None


def _as_run(request: PlanRequest, candidate: Candidate, model: Rewritten, trials: Trials) -> Candidate | None:
    """The candidate with its measured figures, where models are tried; None if the model does not run in the time
    left."""
    if not request.target.tries_plans(request.subject):
        return candidate
    with request.times.part("trying models"):
        seconds = min(max(request.limits.clock.left(), TRIAL_GRACE_SECONDS), TRIAL_SECONDS)
        held = trials.peaks(candidate, model, seconds)
    if held is None:
        return None
    assert candidate.footprint is not None
    promise = request.target.with_peaks(candidate.promise, held)
    return replace(candidate, footprint=replace(candidate.footprint, promise=promise))


def _candidate_from(found: Answer) -> Candidate:
    """The candidate that the answer was made from."""
    return replace(candidate_of(found), model=found.model, footprint=found.footprint)


def more_once(subject: Subject, values: Collection[str], once: Collection[str]) -> set[str]:
    """These ops, and the ops that make any of the values. Where those are in the set already, all ops around them
    too."""
    assert subject.graph is not None
    wanted = set(values)
    found = {op.name for op in subject.graph.ops if wanted.intersection((*op.writes, *op.reads))}
    if not found <= set(once):
        return found.union(once)
    near = {name for op in subject.graph.ops if op.name in found.union(once) for name in (*op.reads, *op.writes)}
    wider = {op.name for op in subject.graph.ops if near.intersection((*op.reads, *op.writes))}
    return wider if found and not wider <= set(once) else set(subject.nodes)


def run_once(subject: Subject, once: Collection[str]) -> Subject:
    """The subject in which these ops are never computed twice."""
    named = zip(subject.nodes, subject.problem.nodes, strict=True)
    nodes = tuple(replace(node, once=node.once or name in once) for name, node in named)
    return subject.solving(replace(subject.problem, nodes=nodes))


def _as_of(subject: Subject, found: Answer, once: Collection[str]) -> Answer:
    """The answer as one about the subject that was asked about."""
    if not once:
        return found
    found = found if found.found else unproved(found)
    return replace(found.noted(Note(PlanNote.RUN_ONCE, (_names(once),))), subject=subject)


def _names(found: Collection[str]) -> str:
    more = f" and {len(found) - NAMED_VALUES} more" if len(found) > NAMED_VALUES else ""
    return ", ".join(sorted(found)[:NAMED_VALUES]) + more
