"""`remat solve`: a plan that fits the budget at the least extra time, with a proof of how good it is.

Invariant: a plan file on disk is always legal and whole; while a solver still searches it holds the best plan so far.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from remat_cli.commands import methods, options
from solvers.registry import DEFAULT

if TYPE_CHECKING:
    from remat_cli.actions.deadline import Deadline
    from remat_cli.actions.solving import Question
    from remat_cli.model.sessions import Session
    from remat_cli.planning.search.answer import Answer
    from remat_cli.planning.subjects.subject import Subject
    from remat_cli.results.memory import Memory
    from solvers.clock import Clock
    from solvers.problem import Limits, Progress

WRITE_EVERY = 1.0  # seconds between writes of an improving plan
BUSY = 0.5  # of the time on the wall that had a processor: below it, the machine is said to be busy
EVALUATIONS = 3  # of a plan, for which time is kept at the end: to hold it to its word and to write it


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE, required=False)
@options.budget
@methods.one_or_all
@options.session
@options.allocator
@options.costs
@click.option(
    "--minimize",
    type=click.Choice(["cost", "peak"]),
    default="cost",
    show_default=True,
    help="Least time, or least memory.",
)
@click.option("--max-overhead", type=options.SHARE, help="The most extra time, with --minimize peak.")
@click.option("--lp", "lp_bound", is_flag=True, help="Print only the linear relaxation's bound.")
@click.option(
    "--reorder/--no-reorder",
    default=None,
    help="milp: whether another order may be taken.",
)
@click.option("--list", "list_methods", is_flag=True, help="List the methods and what they can do.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, with --method all.")
@click.option("--certificate", type=options.FILE, help="Write a proof of the bounds, for `remat check`.")
@methods.own_options
@options.optimize
@options.dims
@options.time_limit
@options.work_limit
@options.gap
@options.seed
@options.force
@options.output
@options.as_json
@options.quiet
@options.verbose
def command(model: Path | None, **given: Any) -> None:
    """Find the fastest plan of MODEL within a memory budget.

    MODEL is a .onnx or .problem.json file. Without it, the only *.costs.yaml in
    the working directory names it.

    \b
    remat solve train.onnx --budget 70%
    remat solve train.onnx --minimize peak --max-overhead 10%
    """
    given["method"] = given["method"] or (DEFAULT if given["reorder"] is None else "milp")
    if given["list_methods"]:
        click.echo(methods.listed(given["as_json"]))
        return
    from remat_cli.actions.deadline import Deadline
    from solvers.clock import limited

    unsaid = click.get_current_context().get_parameter_source("time_limit") is ParameterSource.DEFAULT
    clock = limited(None if unsaid else given["time_limit"], given["work_limit"])
    given["time_limit"] = clock.seconds
    if given["method"] == "all":  # each method has all the time
        _run(model, given, clock, None)
    else:
        with Deadline(clock, lambda: _nothing_yet(given, clock)) as deadline:
            _run(model, given, clock, deadline)


def _nothing_yet(given: Mapping[str, Any], clock: Clock) -> int:
    """The last words of a command that ended before there was a plan."""
    from remat_cli.errors import NoPlan

    stopped = "interrupt" if clock.stopped() else "time"
    if given["as_json"]:
        click.echo(json.dumps({"status": "unknown", "method": given["method"], "plan": None, "stopped": stopped}))
    words = "interrupted before there was a plan"
    if stopped == "time":
        words = "no plan was found within the time limit; give more time with --time-limit"
        had, passed = time.process_time(), clock.elapsed()
        if had < BUSY * passed:
            words += f" (this machine is busy: of {passed:.1f} s the command had {had:.1f} on a processor)"
    click.echo(f"remat: {words}", err=True)
    return NoPlan.code


def _run(model: Path | None, given: Mapping[str, Any], clock: Clock, deadline: Deadline | None) -> None:
    from remat_cli.actions.interrupts import listening
    from remat_cli.actions.solving import budget_of
    from remat_cli.errors import Usage
    from remat_cli.planning.loading import load_subject
    from remat_cli.planning.search.answer import find_solver

    question = _question(given)
    if given["optimize"]:
        if model is None:
            raise Usage("--optimize needs a model: name it")
        model = options.optimized(model, given["optimize"])
    subject = load_subject(model, given["costs"], dict(given["dims"]), question.session)
    find_solver(question.method, {})  # brings what it needs: from here on an interrupt is heard, and only asked about
    with listening() as interrupts:
        clock = clock.unless(interrupts)
        if given["lp_bound"]:
            _tell_relaxation(subject, question, given, clock)
        elif given["method"] == "all":
            _compare(subject, budget_of(subject, question), given, clock)
        else:
            assert deadline is not None
            deadline.clock = clock
            _solve(subject, question, given, _limits(given, clock), deadline)


def _question(given: Mapping[str, Any]) -> Question:
    """What the command line asks, checked."""
    from remat_cli.actions.solving import ONLY_PEAK, Question, kind_named
    from remat_cli.errors import Usage
    from remat_cli.formats import planfile

    own = {name: given[name] for name in methods.told() if given.get(name) is not None}
    every = given["method"] == "all"
    if given["as_csv"] and not every:
        raise Usage("--csv prints the table of --method all; with one method there is --json")
    if every and own:
        raise Usage("options of one method mean nothing to --method all")
    if given["certificate"] and (every or given["lp_bound"]):
        raise Usage("--certificate goes with one method and its plan; leave out --lp and --method all")
    if given["minimize"] == "peak" and (every or given["lp_bound"]):
        raise Usage(ONLY_PEAK)
    question = Question(
        budget=given["budget"],
        method=DEFAULT if every else given["method"],
        minimize=given["minimize"],
        max_overhead=given["max_overhead"],
        known=tuple(planfile.read(path) for path in given["known"]),
        reorder=given["reorder"],
        options=own,
        session=kind_named(given["session"], given["allocator"]),
    )
    question.check()
    return question


def _limits(given: Mapping[str, Any], clock: Clock) -> Limits:
    """What the command line says of how long, how well and how loud."""
    from solvers.problem import Limits

    return Limits(clock, given["gap"], given["seed"], verbose=given["verbose"] >= 2)


def _solve(subject: Subject, question: Question, given: Mapping[str, Any], limits: Limits, deadline: Deadline) -> None:
    from remat_cli.actions.certifying import PROVING
    from remat_cli.actions.solving import ask
    from remat_cli.errors import BadInput
    from remat_cli.formats.files import check_apart
    from remat_cli.planning.search.known import plans_beside
    from remat_cli.runtime.known import unknown_version
    from remat_cli.saying.progress import progress_line

    destination = given["output"] or subject.beside(".plan.json")
    check_apart(destination, subject.path, *given["known"])
    check_apart(given["certificate"], subject.path, destination, *given["known"])
    if not destination.parent.is_dir():
        raise BadInput(f"cannot write {destination}: the folder {destination.parent} does not exist")
    question = replace(question, earlier=plans_beside(destination, subject.source.sha256))
    latest = _Latest(subject, question, destination, given, limits)
    deadline.last_words = latest.last_words
    begun = limits.clock.elapsed()
    plain = subject.before()
    evaluating = limits.clock.elapsed() - begun
    searching = limits.within(limits.clock.left() - EVALUATIONS * evaluating)
    if given["certificate"]:
        searching = searching.share(1 - PROVING)
    with progress_line(plain.cost, given["quiet"], given["verbose"]) as show:

        def report(progress: Progress) -> None:
            show(progress)
            latest.hear(progress)

        found = ask(subject, question, replace(searching, report=report), _memory(given), latest.keep)
    found = replace(found, limits=limits)
    notes = unknown_version()
    if given["certificate"]:
        deadline.last_words = lambda: _uncertified(found, destination, given)
        notes += _certify(subject, found, question.session, given["certificate"], limits.clock)
    deadline.met()
    _tell(found, destination, given, notes)


def _certify(subject: Subject, found: Answer, session: Session, path: Path, clock: Clock) -> list[str]:
    """Write the certificate; what to say of it."""
    from remat_cli.actions.certifying import certified
    from remat_cli.formats import certificatefile

    certificate, missing = certified(subject, found, session, clock)
    certificatefile.write(certificate, path)
    return [f"{path} does not prove {said}" for said in missing]


def _uncertified(found: Answer, destination: Path, given: Mapping[str, Any]) -> int:
    """The last words of a command whose time ended while it made a certificate: of what was asked for, a plan alone."""
    from remat_cli.errors import NoPlan, RematError

    click.echo(f"remat: time was up before {given['certificate']} could be made; give more with --time-limit", err=True)
    try:
        _tell(found, destination, given)
    except RematError as error:
        click.echo(f"remat: {error}", err=True)
        return error.code
    return NoPlan.code


def _memory(given: Mapping[str, Any]) -> Memory:
    """Where answers are kept, and whether this one is looked for there."""
    from remat_cli.results.memory import Memory
    from remat_cli.results.store import Store, folder

    def say(words: str) -> None:
        if not given["quiet"]:
            click.echo(f"remat: {words}", err=True)

    return Memory(store=Store(folder(), say), seconds=given["time_limit"], force=given["force"])


class _Latest:
    """Hears of progress, writes each better plan that fits as it runs, at most once a second, and knows the last."""

    def __init__(
        self, subject: Subject, question: Question, destination: Path, given: Mapping[str, Any], limits: Limits
    ) -> None:
        self.subject, self.question, self.destination, self.given = subject, question, destination, given
        self.limits = limits
        self.written = -WRITE_EVERY
        self.kept: Answer | None = None
        self.progress: Progress | None = None

    def hear(self, progress: Progress) -> None:
        self.progress = progress if progress.order is not None else self.progress

    def keep(self, found: Answer) -> None:
        from remat_cli.planning.plans import record

        self.kept = replace(found, limits=self.limits)
        now = self.limits.clock.elapsed()
        if now - self.written > WRITE_EVERY:
            record.write(self.destination, self.kept)
            self.written = now

    def last_words(self) -> int:
        """What to say when the time is up in the middle of something; the exit code."""
        found = self._best()
        if found is None:
            return _nothing_yet(self.given, self.limits.clock)
        _tell(found, self.destination, self.given)
        return 0

    def _best(self) -> Answer | None:
        """What was found last, or else what was kept before."""
        from remat_cli.actions.solving import so_far
        from solvers.problem import Progress

        progress = self.progress or Progress(0.0)
        found = so_far(self.subject, self.question, progress, self.limits)
        known = [one for one in (found, self.kept) if one is not None]
        return min(known, key=lambda one: one.overhead or 0.0, default=None)


def _tell(found: Answer, destination: Path, given: Mapping[str, Any], notes: Sequence[str] = ()) -> None:
    """Write the plan and say what came of it; raise where there is none."""
    from remat_cli.actions.solving import found_or_raised
    from remat_cli.notes.kinds import OF_ANY_MODEL
    from remat_cli.notes.words import sentences
    from remat_cli.planning.plans import record
    from remat_cli.saying import report

    if found.found:
        record.write(destination, found)
    if given["as_json"]:
        said = report.as_object(found, str(destination) if found.found else None)
        said["notes"] += notes
        click.echo(json.dumps(said))
    found_or_raised(found)
    if given["quiet"] or given["as_json"]:
        return
    if found.untouched:
        for note in sentences(note for note in found.subject.notes if note.kind in OF_ANY_MODEL):
            click.echo(f"note: {note}")
        click.echo(f"{report.as_it_is(found)}\n{_wrote(destination, given)}")
        return
    click.echo(report.summary(found))
    for note in (*sentences(found.notes), *notes):
        click.echo(f"note: {note}")
    if given["minimize"] == "peak" and (least := report.least_peak_bound(found)):
        click.echo(f"note: {least}")
    click.echo(_wrote(destination, given))


def _wrote(destination: Path, given: Mapping[str, Any]) -> str:
    return f"wrote {destination}" + (f" and {given['certificate']}" if given["certificate"] else "")


def _compare(subject: Subject, budget: int, given: Mapping[str, Any], clock: Clock) -> None:
    """Every method on the same question, as a table."""
    from remat_cli.actions.solving import compared
    from remat_cli.errors import Infeasible, NoPlan
    from remat_cli.saying import report
    from remat_cli.saying.progress import Line
    from solvers.problem import Status

    with Line(given["quiet"]) as line:

        def limits(name: str) -> Limits:
            """Each method has all the time there is, and may do as much."""
            line.say(f"{name} ...")
            return _limits(given, clock.again())

        answers = list(compared(subject, budget, limits))
    if given["as_json"]:
        click.echo(json.dumps({"budget": budget, "methods": [report.as_object(found, None) for found in answers]}))
    else:
        click.echo(report.comparison(answers, as_csv=given["as_csv"]))
    if not any(found.found for found in answers):
        proved = any(found.status is Status.INFEASIBLE for found in answers)
        raise (Infeasible if proved else NoPlan)(f"no method found a plan within {budget} bytes")


def _tell_relaxation(subject: Subject, question: Question, given: Mapping[str, Any], clock: Clock) -> None:
    from remat_cli.actions.solving import budget_of, relaxation
    from remat_cli.notes.words import sentence

    no_stages = bool(question.options.get("no_stages"))
    found = relaxation(subject, budget_of(subject, question), _limits(given, clock), no_stages)
    if given["as_json"]:
        answer = {
            "budget": found.budget,
            "lp_bound": found.bound,
            "integrality_gap": found.ratio,
            "of": sentence(found.note),
        }
        click.echo(json.dumps(answer))
        return
    gap = f", integrality gap {found.ratio:.4g}" if found.ratio else ", no schedule found to compare it with"
    click.echo(f"LP bound {found.bound:.6g}{gap}\nnote: {sentence(found.note)}")
