"""Answers as plan files, and their places: a better plan is never replaced by a worse one for the same question, and
the user hears of both.

Invariant: when several programs write plans for one question to one place at once, the best plan is left there. Every
figure in a file is the Answer's, and nothing that changes from run to run is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from remat_cli.errors import BadInput
from remat_cli.formats import planfile
from remat_cli.formats.files import alone_in, write_whole
from remat_cli.formats.planfile import PlanFile, Searched, places_of
from remat_cli.formats.program import name_program
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import STRICT
from remat_cli.notes.kinds import PlanNote
from remat_cli.notes.words import sentences
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.in_pieces import scheduled_by
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate, Footprint
from remat_cli.plans.figures import replayed
from solvers.notes import Note
from solvers.problem import Result, Status
from solvers.registry import METHODS
from solvers.schedule import Schedule


def plan_file(answer: Answer) -> PlanFile:
    """The plan of an answer that found one."""
    outcome, plan, subject = answer.schedule.outcome, answer.schedule.plan, answer.subject
    assert outcome is not None
    assert plan is not None
    kind = answer.session or STRICT
    return PlanFile(
        model=subject.source,
        costs=subject.costs,
        dims=dict(subject.dims),
        budget=answer.budget,
        method=answer.method,
        seed=answer.limits.seed,
        limits=Searched(answer.limits.clock.seconds, answer.limits.gap, answer.limits.clock.most),
        status=answer.status.value,
        bound=answer.bound,
        bound_any_order=answer.bound_any_order,
        peak=outcome.peak,
        cost=outcome.cost,
        baseline_peak=answer.baseline.peak,
        baseline_cost=answer.baseline.cost,
        resident=subject.problem.resident,
        promises=replace(answer.promise or Promise(strict=outcome.peak), itself=answer.itself),
        program=name_program(plan, subject.nodes, subject.values),
        notes=sentences(answer.notes),
        session=kind.name,
        graph=subject.graph_planned,
        pieces=subject.pieces,
        in_place=dict(subject.graph.in_place) if subject.graph else {},
        placement=places_of(answer.placement) if answer.placement else None,
        asked=dict(answer.asked),
    )


@dataclass(frozen=True, slots=True)
class StandingPlan:
    """The plan that stands at a path now, and the note about the plan that was replaced or stays."""

    plan: PlanFile
    text: str
    notes: tuple[Note, ...] = ()


def put(plan: PlanFile, path: Path, subject: Subject, ours: str = "") -> StandingPlan:
    """Write the plan, unless a better one for the same question stands there.

    `subject`: what the question was about, or what the plan is of. `ours`: what this program wrote there before, which
    needs no note.
    """
    text = planfile.dump(plan, path.parent)
    if path.exists() and not path.is_file():  # Reading a pipe would block.
        write_whole(path, text)
        return StandingPlan(plan, text)
    with alone_in(path.parent):
        before, stood = _standing(path)
        if stood is not None and before != text and _stays(stood, plan, subject, before == ours):
            return StandingPlan(stood, before, (_staying(path, stood, plan),))
        if before != text:
            write_whole(path, text)
    return StandingPlan(plan, text, () if before in ("", ours, text) else _written_over(path, stood, plan))


def keep(found: Answer, path: Path, asked: Subject, ours: str = "") -> tuple[Answer, StandingPlan]:
    """Write the plan of the answer. The result is the answer for the plan that stands there now."""
    plan = plan_file(found)
    kept = put(plan, path, asked, ours)
    return (found if kept.plan is plan else _answer_of(kept.plan, scheduled_by(kept.plan, asked), found)), kept


def _standing(path: Path) -> tuple[str, PlanFile | None]:
    """The text of the file that stands there, and the plan in it, if it is a plan."""
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return text, planfile.read(path) if text else None
    except UnicodeDecodeError:
        return "no text", None
    except (BadInput, OSError):
        return text, None


def _stays(old: PlanFile, new: PlanFile, subject: Subject, ours: bool) -> bool:
    """Whether the old plan stays: it answers the same question, is sound, and is as good. If it is ours from a moment
    ago, it stays only if it is better.

    The plan of a method that does not aim at the least time is that method's own answer, so it is always written.
    """
    if new.method not in METHODS or not METHODS[new.method].proof:
        return False
    as_good = _rank(old)[0] < _rank(new)[0] if ours else _rank(old) <= _rank(new)
    return as_good and _question(old) == _question(new) and is_sound(old, subject)


def _question(plan: PlanFile) -> tuple[object, ...]:
    """All that makes up the question that a plan answers, except how hard the search tried."""
    costs = plan.costs.sha256 if plan.costs else None
    graph = plan.model.sha256, costs, plan.dims, plan.in_place, plan.session
    return graph, plan.method, None if "budget" in plan.asked else plan.budget, plan.asked


def _rank(plan: PlanFile) -> tuple[float, ...]:
    """A sort key, the best plan first: by the figure to be minimised, then by the bound, the arena and the peak."""
    rank = plan.time, -(plan.bound or 0), plan.promises.arena or 0, plan.peak
    return (plan.budget, *rank) if _least_memory(plan) else rank


def _least_memory(plan: PlanFile) -> bool:
    return plan.asked.get("minimize") == "peak"


def is_sound(plan: PlanFile, subject: Subject) -> bool:
    """Whether the plan's figures are those of `simulate` for this subject; a damaged file's are not."""
    try:
        replayed(plan, scheduled_by(plan, subject))
    except BadInput:
        return False
    return True


def _written_over(path: Path, stood: PlanFile | None, plan: PlanFile) -> tuple[Note, ...]:
    if stood is None:
        return (Note(PlanNote.NO_PLAN_STOOD, (path.name,)),)
    if _question(stood) != _question(plan):
        said = (path.name, stood.model.path.name, stood.budget, stood.session, stood.method, stood.overhead)
        return (Note(PlanNote.ANOTHER_STOOD, said),)
    if _rank(stood)[0] < _rank(plan)[0] and METHODS[plan.method].proof:  # it is not sound
        return (Note(PlanNote.NO_PLAN_STOOD, (path.name,)),)
    if _figure(stood) == _figure(plan) or not METHODS[plan.method].proof:
        return ()
    return (Note(PlanNote.WORSE_STOOD, (path.name, _figure(stood), _figure(plan))),)


def _staying(path: Path, stood: PlanFile, plan: PlanFile) -> Note:
    if _rank(stood)[0] < _rank(plan)[0]:
        return Note(PlanNote.STAYS, (path.name, _figure(stood), _figure(plan)))
    return Note(PlanNote.STAYS_AS_GOOD, (path.name,))


def _figure(plan: PlanFile) -> str:
    """The figure by which plans for one question are compared."""
    return f"{plan.budget} bytes" if _least_memory(plan) else f"{plan.overhead:+.2%} time"


def _answer_of(plan: PlanFile, subject: Subject, found: Answer) -> Answer:
    """The plan as the answer to the question that `found` answers too, with the better of both proofs."""
    numbers, outcome = replayed(plan, subject)
    status, result = Status(plan.status), found.schedule.result
    best = max((bound for bound in (plan.bound, result.bound) if bound is not None), default=None)
    proofs = plan.bound_any_order, result.bound_any_order
    any_order = max((bound for bound in proofs if bound is not None), default=None)
    other = Result(status, numbers.order(), best, bound_any_order=any_order, grounds=result.grounds)
    footprint = Footprint(plan.promises, plan.placement) if found.promise else None
    candidate = Candidate(subject, Schedule(other, numbers, outcome), footprint=footprint)
    return replace(found, candidate=candidate, budget=plan.budget, untouched=False)
