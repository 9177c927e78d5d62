"""What `remat solve` says and writes: each better plan while it searches, its answer, and last words.

Invariant: a plan file on disk is always legal and whole; while a solver still searches it holds the best plan so far.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.actions.interrupts import Halted
from remat_cli.commands.options import say_object
from remat_cli.errors import NoPlan, RematError
from solvers.clock import Clock
from solvers.notes import Note
from solvers.problem import Limits

if TYPE_CHECKING:
    from remat_cli.actions.questions import Question
    from remat_cli.planning.search.answer import Answer
    from remat_cli.planning.search.so_far import SoFar
    from remat_cli.planning.subjects.subject import Subject

WRITE_EVERY_SECONDS = 1.0  # an improving plan is written at most so often
BUSY_SHARE = 0.5  # of the time on the wall that had a processor: below it, the machine is said to be busy


def tell_nothing_yet(given: Mapping[str, Any], clock: Clock, halted: bool) -> RematError:
    """The last words of a command that ended before there was a plan."""
    stopped, words = "interrupt", "interrupted before there was a plan"
    if not halted:
        stopped, words = "time", "no plan was found within the time limit; give more time with --time-limit"
        had, passed = time.process_time(), clock.elapsed()
        if had < BUSY_SHARE * passed:
            words += f" (this machine is busy: of {passed:.1f} s the command had {had:.1f} on a processor)"
    error = Halted(words) if halted else NoPlan(words)
    if given["as_json"]:
        said = {"status": "unknown", "method": given["method"], "plan": None, "stopped": stopped}
        say_object(said, error)
    click.echo(f"remat: {error}", err=True)
    return error


class Place:
    """Where the plan of this command goes. `notes`: what is to be said of what stood there, or came in between."""

    def __init__(self, path: Path, subject: Subject) -> None:
        self.path, self.subject = path, subject
        self.ours = ""
        self.notes: tuple[Note, ...] = ()

    def put(self, found: Answer) -> Answer:
        """Write the plan, unless a better one stands there; the one that stands there now."""
        from remat_cli.notes.kinds import STAYING
        from remat_cli.plans.keeping import keep

        stands, kept = keep(found, self.path, self.subject, self.ours)
        self.ours = kept.text if stands is found else self.ours
        gone = (note for note in self.notes if note.kind not in STAYING)
        self.notes = tuple(dict.fromkeys((*gone, *kept.notes)))
        return stands


class LatestPlan:
    """Looks at what is known while a search goes on, and writes each better plan that fits as it runs, at most once a
    second; `last_words` says the best by then, or a proved no."""

    def __init__(
        self, question: Question, known: SoFar, place: Place, given: Mapping[str, Any], limits: Limits
    ) -> None:
        self.question, self.known, self.place, self.given, self.limits = question, known, place, given, limits
        self.written: Answer | None = None
        self.at = -WRITE_EVERY_SECONDS

    def look(self) -> None:
        plan, now = self.known.plan, self.limits.clock.elapsed()
        if plan is None or plan is self.written or now - self.at <= WRITE_EVERY_SECONDS:
            return
        self.written, self.at = plan, now
        with suppress(RematError, OSError):  # what cannot be written now is told when the answer is written
            self.place.put(replace(plan, limits=self.limits))

    def last_words(self, halted: bool) -> RematError | None:
        """What to say when the time is up in the middle of something."""
        from remat_cli.actions.solving import best_by_now

        uncertified, missing = self.known.found is not None and self.given["certificate"], None
        if uncertified:  # of what was asked for there is a plan alone
            missing = NoPlan(f"time was up before {uncertified} could be made; give more with --time-limit")
            click.echo(f"remat: {missing}", err=True)
        found = best_by_now(self.question, self.known, self.limits)
        if found is None:
            return tell_nothing_yet(self.given, self.limits.clock, halted)
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
    from remat_cli.actions.solving import refusal
    from remat_cli.notes.words import sentences
    from remat_cli.saying import refusals, report

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
        say_object(said, error)
    elif found.found and not given["quiet"]:
        _tell_people(found, place, given, notes)
    return error


def _tell_people(found: Answer, place: Place, given: Mapping[str, Any], notes: Sequence[str]) -> None:
    from remat_cli.notes.kinds import OF_ANY_MODEL, ROUTINE
    from remat_cli.notes.words import sentences
    from remat_cli.saying import refusals, report

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
    click.echo(_wrote(place.path, given) + _next(found, place.path))


def _wrote(destination: Path, given: Mapping[str, Any]) -> str:
    proof = given["certificate"]
    return f"wrote {destination}" + (f" and {proof}" if proof else "")


def _next(found: Answer, destination: Path) -> str:
    """The command to run on the plan, where it is one of a model."""
    return "" if found.subject.graph is None else f"; next: remat verify {destination}"
