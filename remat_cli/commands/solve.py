"""`remat solve`: a plan that fits the budget at the least extra time, with a proof of how good it is.

Invariant: a plan file on disk is always legal and whole; while a solver still searches it holds the best plan so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.actions.interrupts import Deadline, listening
from remat_cli.commands import methods, options
from remat_cli.commands.helping import MethodOption
from remat_cli.commands.solve_answer import LatestPlan, Place, tell_answer, tell_nothing_yet
from remat_cli.errors import BadInput, Infeasible, NoPlan, NoSchedule, Usage
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.model.sessions import STRICT
from remat_cli.units import show_bytes
from solvers.clock import Clock
from solvers.problem import Limits, Status
from solvers.registry import DEFAULT

if TYPE_CHECKING:
    from remat_cli.actions.answering import WholeQuestion
    from remat_cli.actions.questions import Question

ALL = "all"  # stands for every method


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
def command(model: Path | None, **parsed: Any) -> None:
    """Find the fastest plan of MODEL within a memory budget.

    MODEL is a .onnx or .problem.json file; by default that of the *.costs.yaml.

    \b
    remat solve train.onnx --budget 70%
    """
    given = settled(parsed)
    if given["list_methods"]:
        methods.list_methods(given["as_json"])
        return
    from remat_cli.actions.answering import cut_as_asked
    from remat_cli.saying.progress import tell_times

    clock = options.clock_of(given)
    deadline = None  # each method has all the time
    if given["method"] != ALL:
        deadline = Deadline(clock, lambda halted: tell_nothing_yet(given, clock, halted), searching=False)
    with deadline or nullcontext():
        asked = _asked(model, given, clock)
        with listening() as interrupts:
            clock = clock.unless(interrupts)
            asked = replace(asked, limits=limits_of(given, clock))
            if deadline is not None:
                deadline.clock = clock
            if deadline is None or given["lp_bound"]:
                if deadline is not None:
                    deadline.search_begins()
                (_tell_relaxation if given["lp_bound"] else _compare)(cut_as_asked(asked), given)
                return
            _solve(asked, given, deadline)
            if given["verbose"] and not given["quiet"]:
                tell_times(asked.so_far.times, clock.elapsed())


def _asked(model: Path | None, given: Mapping[str, Any], clock: Clock) -> WholeQuestion:
    """The question, of the model as it is read."""
    from remat_cli.actions.answering import WholeQuestion
    from remat_cli.actions.solving import budget_of
    from remat_cli.planning.loading import load_subject
    from remat_cli.planning.search.answer import find_solver
    from remat_cli.planning.search.so_far import SoFar
    from remat_cli.planning.search.untouched import too_small

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


def _solve(asked: WholeQuestion, given: Mapping[str, Any], deadline: Deadline) -> None:
    from remat_cli.actions.answering import answer_whole
    from remat_cli.events import EventQueue
    from remat_cli.formats import certificatefile
    from remat_cli.planning.search.known import known_before
    from remat_cli.runtime.session import unknown_version
    from remat_cli.saying.progress import progress_line

    subject, question, known, proof = asked.subject, asked.question, asked.so_far, given["certificate"]
    destination = given["output"] or subject.beside(f".{name_of(given)}.plan.json")
    check_place(destination, FileKind.PLAN, subject.path, *given["known"])
    check_place(proof, FileKind.CERTIFICATE, subject.path, destination, *given["known"])
    if not destination.parent.is_dir():
        raise BadInput(f"cannot write {destination}: the folder {destination.parent} does not exist")
    before = known_before(destination, subject.source.sha256)
    question = replace(question, stands=before["stands"], earlier=(*question.earlier, *before["earlier"]))
    place = Place(destination, subject)
    latest = LatestPlan(question, known, place, given, asked.limits)

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


def _compare(asked: WholeQuestion, given: Mapping[str, Any]) -> None:
    """Every method on the same question, as a table."""
    from remat_cli.actions.solving import budget_of, compare_methods
    from remat_cli.saying import report
    from remat_cli.saying.progress import Line

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


def _tell_relaxation(asked: WholeQuestion, given: Mapping[str, Any]) -> None:
    from remat_cli.actions.solving import budget_of, relaxation
    from remat_cli.notes.words import sentence

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


def settled(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """What click has parsed, with those flags together as `own` that only some methods have, by their options' names;
    --reorder without a method means the one that has an order."""
    given = dict(parsed)
    own = {name: value for name in methods.options_told() if (value := given.pop(name, None)) is not None}
    method = given["method"] or (DEFAULT if given["reorder"] is None else "milp")
    return {**given, "method": method, "own": own}


def question_of(given: Mapping[str, Any]) -> Question:
    """What the command line asks, checked."""
    from remat_cli.actions.questions import ONLY_PEAK, Question
    from remat_cli.formats import planfile

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
