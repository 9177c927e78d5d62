"""`remat solve`: a plan that fits the budget at the least extra time, with a proof of how good it is.

Invariant: a plan file on disk is always legal and whole; while a solver still searches it holds the best plan so far.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import methods, options
from remat_cli.commands.helping import MethodOption
from remat_cli.commands.solve_answer import LatestPlan, Place, tell_answer, tell_nothing_yet
from remat_cli.commands.solve_flags import SolveFlags, limits_of, name_of, question_of

if TYPE_CHECKING:
    from remat_cli.actions.answering import WholeQuestion
    from remat_cli.actions.deadline import Deadline
    from solvers.clock import Clock
    from solvers.problem import Limits


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE, required=False)
@options.budget
@methods.one_or_all
@options.runtime
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
    cls=MethodOption,
    owners=("milp",),
    help="Whether another order may be taken.",
)
@click.option("--list", "list_methods", is_flag=True, help="List the methods and what they can do.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, with --method all.")
@click.option("--certificate", type=options.FILE, help="Write a proof of the bounds, for `remat check`.")
@methods.own_options
@options.optimize
@options.in_place
@options.pieces
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

    MODEL is a .onnx or .problem.json file; by default that of the *.costs.yaml.

    \b
    remat solve train.onnx --budget 70%
    """
    flags = SolveFlags.of(**given)
    if flags.list_methods:
        click.echo(methods.list_methods(flags.as_json))
        return
    from remat_cli.actions.answering import cut_as_asked
    from remat_cli.actions.deadline import Deadline
    from remat_cli.actions.interrupts import listening
    from remat_cli.saying.progress import tell_times

    clock = options.clock_of(flags.time_limit, flags.work_limit)
    flags = replace(flags, time_limit=clock.seconds)
    deadline = None  # each method has all the time
    if not flags.every_method:
        deadline = Deadline(clock, lambda: tell_nothing_yet(flags, clock), searching=False)
    with deadline or nullcontext():
        asked = _asked(model, flags, clock)
        with listening() as interrupts:
            clock = clock.unless(interrupts)
            asked = replace(asked, limits=limits_of(flags, clock))
            if deadline is not None:
                deadline.clock = clock
            if deadline is None or flags.lp_bound:
                if deadline is not None:
                    deadline.search_begins()
                (_tell_relaxation if flags.lp_bound else _compare)(cut_as_asked(asked), flags)
                return
            _solve(asked, flags, deadline)
            if flags.verbose and not flags.quiet:
                tell_times(asked.so_far.times, clock.elapsed())


def _asked(model: Path | None, flags: SolveFlags, clock: Clock) -> WholeQuestion:
    """The question, of the model as it is read."""
    from remat_cli.actions.answering import WholeQuestion
    from remat_cli.actions.pieces_asked import pieces_named
    from remat_cli.actions.solving import budget_of
    from remat_cli.errors import Usage
    from remat_cli.planning.loading import load_subject
    from remat_cli.planning.search.answer import find_solver
    from remat_cli.planning.search.so_far import SoFar
    from remat_cli.planning.search.untouched import too_small

    question, in_place = question_of(flags), options.asked_in_place(flags.in_place, flags.held_twice)
    cuts = pieces_named(flags.pieces, flags.largest_value)
    if flags.optimize:
        if model is None:
            raise Usage("--optimize needs a model: name it")
        model = options.optimized(model, flags.optimize)
    known = SoFar(watched=True)
    with known.times.part("reading the model"):
        subject = load_subject(model, flags.costs, dict(flags.dims), question.session, in_place=in_place)
    if not (flags.budget and too_small(subject, budget_of(subject, question), question.session)):
        find_solver(question.method, {})  # brings what it needs: from here on an interrupt is only asked about
    return WholeQuestion(
        subject=subject,
        question=question,
        limits=limits_of(flags, clock),
        memory=options.memory_of(flags.time_limit, flags.force, flags.quiet),
        cuts=cuts,
        proving=flags.certificate is not None,
        so_far=known,
    )


def _solve(asked: WholeQuestion, flags: SolveFlags, deadline: Deadline) -> None:
    from remat_cli.actions.answering import answer_whole
    from remat_cli.errors import BadInput
    from remat_cli.formats import certificatefile
    from remat_cli.formats.kinds import FileKind, check_place
    from remat_cli.planning.search.known import known_before
    from remat_cli.runtime.session import unknown_version
    from remat_cli.saying.progress import progress_line

    subject, question, known = asked.subject, asked.question, asked.so_far
    destination = flags.output or subject.beside(f".{name_of(flags)}.plan.json")
    check_place(destination, FileKind.PLAN, subject.path, *flags.known)
    check_place(flags.certificate, FileKind.CERTIFICATE, subject.path, destination, *flags.known)
    if not destination.parent.is_dir():
        raise BadInput(f"cannot write {destination}: the folder {destination.parent} does not exist")
    before = known_before(destination, subject.source.sha256)
    question = replace(question, stands=before["stands"], earlier=(*question.earlier, *before["earlier"]))
    place = Place(destination, subject)
    latest = LatestPlan(question, known, place, flags, asked.limits)

    def look() -> None:
        if known.begun:
            deadline.search_begins()
        latest.look()

    deadline.last_words, deadline.look = latest.last_words, look
    with progress_line(subject.before().cost, flags.quiet, flags.verbose) as known.tell:
        answered = answer_whole(replace(asked, question=question))
    notes = unknown_version()
    if answered.certificate is not None and flags.certificate is not None:
        certificatefile.write(answered.certificate, flags.certificate)
        notes += [f"{flags.certificate} does not prove {said}" for said in answered.unproved]
    deadline.met()
    tell_answer(answered.found, place, flags, notes)


def _compare(asked: WholeQuestion, flags: SolveFlags) -> None:
    """Every method on the same question, as a table."""
    from remat_cli.actions.solving import budget_of, compare_methods
    from remat_cli.errors import Infeasible, NoPlan, NoSchedule, error_in
    from remat_cli.saying import report
    from remat_cli.saying.progress import Line
    from remat_cli.units import show_bytes
    from solvers.problem import Status

    subject, budget = asked.subject, budget_of(asked.subject, asked.question)
    with Line(flags.quiet) as line:

        def limits(name: str) -> Limits:
            """Each method has all the time there is, and may do as much."""
            line.say(f"{name} ...")
            return replace(asked.limits, clock=asked.limits.clock.again())

        answers = list(compare_methods(subject, budget, limits))
    error: NoSchedule | None = None
    if not any(found.found for found in answers):
        proved = any(found.status is Status.INFEASIBLE for found in answers)
        error = (Infeasible if proved else NoPlan)(f"no method found a plan within {show_bytes(budget)}")
    if flags.as_json:
        said = {"budget": budget, "methods": [report.as_object(found, None) for found in answers]}
        click.echo(json.dumps(error_in(said, error)))
    else:
        click.echo(report.comparison(answers, as_csv=flags.as_csv))
    if error is not None:
        raise error


def _tell_relaxation(asked: WholeQuestion, flags: SolveFlags) -> None:
    from remat_cli.actions.solving import budget_of, relaxation
    from remat_cli.notes.words import sentence

    subject, question = asked.subject, asked.question
    no_stages = bool(question.options.get("no_stages"))
    found = relaxation(subject, budget_of(subject, question), asked.limits, no_stages)
    if flags.as_json:
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
