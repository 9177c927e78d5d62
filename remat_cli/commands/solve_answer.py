"""What `remat solve` does once its flags are read: it asks, writes each better plan while a search goes on, and says
its answer or last words.

Invariant: a plan file on disk is always legal and whole; while a solver still searches it holds the best plan so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from remat_cli.actions.answering import WholeQuestion, answer_whole, cut_as_asked
from remat_cli.actions.interrupts import Deadline, Halted
from remat_cli.actions.questions import ONLY_PEAK, Question
from remat_cli.actions.solving import best_by_now, budget_of, compare_methods, refusal, relaxation
from remat_cli.commands import options
from remat_cli.commands.methods import ALL
from remat_cli.errors import Infeasible, NoPlan, NoSchedule, RematError, Usage
from remat_cli.events import EventQueue
from remat_cli.formats import certificatefile, planfile
from remat_cli.formats.kinds import FileKind, check_places
from remat_cli.model.sessions import STRICT
from remat_cli.notes.kinds import OF_ANY_MODEL, ROUTINE, STAYING
from remat_cli.notes.words import sentence, sentences
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer, find_solver
from remat_cli.planning.search.known import known_before
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.search.untouched import too_small
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.keeping import keep
from remat_cli.runtime.session import unknown_version
from remat_cli.saying import refusals, report
from remat_cli.saying.progress import Line, progress_line, tell_times
from remat_cli.units import show_bytes
from solvers.clock import Clock
from solvers.notes import Note
from solvers.problem import Limits, Status
from solvers.registry import DEFAULT

WRITE_EVERY_SECONDS = 1.0  # an improving plan is written at most so often


class Place:
    """Where the plan of this command goes. `notes`: what is to be said of what stood there, or came in between."""

    def __init__(self, path: Path, subject: Subject) -> None:
        self.path, self.subject = path, subject
        self.ours = ""
        self.notes: tuple[Note, ...] = ()

    def put(self, found: Answer) -> Answer:
        """Write the plan, unless a better one stands there; the one that stands there now."""
        stands, kept = keep(found, self.path, self.subject, self.ours)
        self.ours = kept.text if stands is found else self.ours
        gone = (note for note in self.notes if note.kind not in STAYING)
        self.notes = tuple(dict.fromkeys((*gone, *kept.notes)))
        return stands


@dataclass(slots=True)
class LatestPlan:
    """Looks at what is known while a search goes on, and writes each better plan that fits as it runs, at most once a
    second; `last_words` says the best by then, or a proved no, and where there is neither, what `nothing` says."""

    question: Question
    known: SoFar
    place: Place
    given: Mapping[str, Any]
    limits: Limits
    nothing: Callable[[bool], RematError | None]
    written: Answer | None = None
    at: float = -WRITE_EVERY_SECONDS

    def look(self) -> None:
        plan, now = self.known.plan, self.limits.clock.elapsed()
        if plan is None or plan is self.written or now - self.at <= WRITE_EVERY_SECONDS:
            return
        self.written, self.at = plan, now
        with suppress(RematError, OSError):  # what cannot be written now is told when the answer is written
            self.place.put(replace(plan, limits=self.limits))

    def last_words(self, halted: bool) -> RematError | None:
        """What to say when the time is up in the middle of something."""
        uncertified, missing = self.known.found is not None and self.given["certificate"], None
        if uncertified:  # of what was asked for there is a plan alone
            missing = NoPlan(f"time was up before {uncertified} could be made; give more with --time-limit")
            click.echo(f"remat: {missing}", err=True)
        found = best_by_now(self.question, self.known, self.limits)
        if found is None:
            return self.nothing(halted)
        try:
            error = tell_answer(replace(found, limits=self.limits), self.place, self.given, halted)
        except RematError as wrong:
            error = wrong
        if error is not None:
            click.echo(f"remat: {error}", err=True)
        return error or missing


def tell_answer(
    found: Answer, place: Place, given: Mapping[str, Any], halted: bool, notes: Sequence[str] = ()
) -> RematError | None:
    """Write the plan and say what came of it; what to end with, where there is none or the user ended the search."""
    if found.found:
        found = place.put(found)
        notes = (*notes, *sentences(place.notes))
    elif given["verbose"] and not given["quiet"]:
        for line in refusals.explain(found):
            click.echo(f"note: {line}", err=True)
    error = Halted() if halted else refusal(found)
    if given["as_json"]:
        said = report.as_object(found, str(place.path) if found.found else None)
        said["notes"] += notes
        options.say_object(said, error)
    elif found.found and not given["quiet"]:
        _tell_people(found, place, given, notes)
    return error


def _tell_people(found: Answer, place: Place, given: Mapping[str, Any], notes: Sequence[str]) -> None:
    if found.untouched:
        for note in sentences(note for note in found.subject.notes if note.kind in OF_ANY_MODEL):
            click.echo(f"note: {note}")
        for line in notes:
            click.echo(f"note: {line}")
        click.echo(f"{report.as_it_is(found)}\n{_wrote(place.path, given)}")
        return
    click.echo(report.summary(found, bool(given["verbose"]), given["minimize"] == "peak"))
    if given["verbose"] and found.schedule.result.parts:
        click.echo(report.parts_table(found))
    told = [note for note in found.notes if given["verbose"] or note.kind not in ROUTINE]
    for line in (*sentences(told), *notes):
        click.echo(f"note: {line}")
    if given["minimize"] == "peak" and (least := refusals.least_peak_bound(found)):
        click.echo(f"note: {least}")
    further = "" if found.subject.graph is None else f"; next: remat verify {place.path}"
    click.echo(_wrote(place.path, given) + further)


def _wrote(destination: Path, given: Mapping[str, Any]) -> str:
    proof = given["certificate"]
    return f"wrote {destination}" + (f" and {proof}" if proof else "")


def asked_of(model: Path | None, given: Mapping[str, Any], clock: Clock) -> WholeQuestion:
    """The question, of the model as it is read."""
    question, in_place = question_of(given), options.asked_in_place(given)
    cuts = options.asked_pieces(given)
    if given["optimize"]:
        if model is None:
            raise Usage("--optimize needs a model: name it")
        model = options.optimized(model, given["optimize"])
    known = SoFar(watched=True)
    with known.times.part("reading the model"):
        subject = load_subject(model, given["costs"], dict(given["dims"]), question.session, in_place=in_place)
    if not (given["budget"] and too_small(subject, budget_of(subject, question), question.session)):
        find_solver(question.method, {})  # brings what it needs: from here on an interrupt is only asked about
    return WholeQuestion(
        subject=subject,
        question=question,
        limits=limits_of(given, clock),
        memory=options.memory_of(clock, given),
        cuts=cuts,
        proving=given["certificate"] is not None,
        so_far=known,
    )


def solve(asked: WholeQuestion, given: Mapping[str, Any], deadline: Deadline) -> None:
    subject, question, known, proof = asked.subject, asked.question, asked.so_far, given["certificate"]
    destination = given["output"] or subject.beside(f".{name_of(given)}.plan.json")
    written = ((destination, FileKind.PLAN), (proof, FileKind.CERTIFICATE))
    check_places(written, subject.path, *given["known"])
    before = known_before(destination, subject.source.sha256)
    question = replace(question, stands=before["stands"], earlier=(*question.earlier, *before["earlier"]))
    place = Place(destination, subject)
    latest = LatestPlan(question, known, place, given, asked.limits, deadline.last_words)

    def look() -> None:
        if known.begun:
            deadline.search_begins()
        latest.look()

    deadline.last_words, deadline.look = latest.last_words, look
    known.events = EventQueue()
    with progress_line(subject.before().cost, given["quiet"], given["verbose"]) as show, known.events.read_by(show):
        answered = answer_whole(replace(asked, question=question))
    notes = unknown_version()
    if answered.certificate is not None and proof is not None:
        certificatefile.write(answered.certificate, proof)
        notes += [f"{proof} does not prove {said}" for said in answered.unproved]
    deadline.answer(lambda halted: tell_answer(answered.found, place, given, halted, notes))
    if given["verbose"] and not given["quiet"]:
        tell_times(known.times, asked.limits.clock.elapsed())


def compare(asked: WholeQuestion, given: Mapping[str, Any]) -> None:
    """Every method on the same question, as a table."""
    asked = cut_as_asked(asked)
    subject, budget = asked.subject, budget_of(asked.subject, asked.question)
    with Line(given["quiet"]) as line:

        def limits(name: str) -> Limits:
            """Each method has all the time there is, and may do as much."""
            line.say(f"{name} ...")
            return replace(asked.limits, clock=asked.limits.clock.again())

        answers = list(compare_methods(subject, budget, limits))
    error: NoSchedule | None = None
    if not any(found.found for found in answers):
        proved = any(found.status is Status.INFEASIBLE for found in answers)
        error = (Infeasible if proved else NoPlan)(f"no method found a plan within {show_bytes(budget)}")
    if given["as_json"]:
        options.say_object({"budget": budget, "methods": [report.as_object(found, None) for found in answers]}, error)
    else:
        click.echo(report.comparison(answers, as_csv=given["as_csv"]))
    if error is not None:
        raise error


def tell_relaxation(asked: WholeQuestion, given: Mapping[str, Any]) -> None:
    asked = cut_as_asked(asked)
    subject, question = asked.subject, asked.question
    no_stages = bool(question.options.get("no_stages"))
    found = relaxation(subject, budget_of(subject, question), asked.limits, no_stages)
    if given["as_json"]:
        answer = {
            "budget": found.budget,
            "lp_bound": found.bound,
            "integrality_gap": found.ratio,
            "of": sentence(found.note),
        }
        options.say_object(answer)
        return
    gap = f", integrality gap {found.ratio:.4g}" if found.ratio else ", no schedule found to compare it with"
    click.echo(f"LP bound {found.bound:.6g}{gap}\nnote: {sentence(found.note)}")


def question_of(given: Mapping[str, Any]) -> Question:
    """What the command line asks, checked."""
    every, peak = given["method"] == ALL, given["minimize"] == "peak"
    if given["as_csv"] and not every:
        raise Usage("--csv prints the table of --method all; with one method there is --json")
    if every and given["own"]:
        raise Usage("options of one method mean nothing to --method all")
    if given["certificate"] and (every or given["lp_bound"]):
        raise Usage("--certificate goes with one method and its plan; leave out --lp and --method all")
    if peak and (every or given["lp_bound"]):
        raise Usage(ONLY_PEAK)
    question = Question(
        budget=given["budget"],
        method=DEFAULT if every else given["method"],
        minimize=given["minimize"],
        max_overhead=given["max_overhead"],
        known=tuple(planfile.read(path) for path in given["known"]),
        reorder=given["reorder"],
        options=dict(given["own"]),
        session=given["session"],
    )
    question.check()
    return question


def name_of(given: Mapping[str, Any]) -> str:
    """What a plan's file is called by default after its model: the budget, and what else is not the usual."""
    least, most = given["minimize"] == "peak", given["max_overhead"]
    said_most = "" if most is None else f"-{100 * most:.10g}%"
    said = (
        *(f"{name}{size}" for name, size in given["dims"]),
        f"least{said_most}" if least else str(given["budget"]) if given["budget"] else "",
        given["session"].runtime if given["session"] != STRICT else "",
        given["method"] if given["method"] != DEFAULT or not (least or given["budget"]) else "",
    )
    return ".".join(part for part in said if part)


def limits_of(given: Mapping[str, Any], clock: Clock) -> Limits:
    """What the command line says of how long, how well and how loud."""
    return Limits(clock, given["gap"], given["seed"], verbose=given["verbose"] >= 2)
