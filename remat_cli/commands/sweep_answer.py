"""What `sweep` does once its flags are read, and says.

Invariant: each point is kept as soon as it is found, so that the same command goes on where it was killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from remat_cli.actions.interrupts import Deadline, Halted, listening
from remat_cli.actions.measuring import measure_curve
from remat_cli.actions.sweeping import Sweep, SweepQuestion
from remat_cli.commands import methods, options
from remat_cli.errors import BadInput, Infeasible, NoPlan, NoSchedule, RematError, error_in
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_apart, check_place
from remat_cli.notes.words import sentences
from remat_cli.planning.loading import load_subject
from remat_cli.planning.time_plan import ENDING_SHARE
from remat_cli.plans.keeping import put
from remat_cli.plans.points import Curve
from remat_cli.saying import curves
from remat_cli.saying.pictures.canvas import check_picture
from remat_cli.saying.pictures.curve import draw_curve
from remat_cli.saying.progress import Line, bar
from solvers.clock import Clock
from solvers.problem import Limits, Status


def sweep(model: Path | None, given: Mapping[str, Any]) -> None:
    """Solve for every budget, and print the curve."""
    named, pieces = methods.methods_named(given["methods"]), options.asked_pieces(given)
    asked = SweepQuestion(budgets=given["budgets"], methods=named, session=given["session"], pieces=pieces)
    asked.check()
    _check_places(model, given["plot"], given["output"])
    with listening() as interrupts:
        clock = options.clock_of(given).unless(interrupts)
        with Deadline(clock, lambda halted: _tell_nothing(given, clock, halted)) as deadline:
            curve = _swept(model, asked, given, deadline)
            deadline.met()
            if given["measure"]:
                with Line(given["quiet"]) as line:
                    curve = measure_curve(curve, lambda done, total: line.say(f"running model {done + 1} of {total}"))
            deadline.answer(partial(_tell, curve, given))


def _swept(model: Path | None, asked: SweepQuestion, given: Mapping[str, Any], deadline: Deadline) -> Curve:
    in_place = options.asked_in_place(given)
    subject = load_subject(model, given["costs"], dict(given["dims"]), asked.session, in_place=in_place)
    deadline.search_begins()
    limits = Limits(deadline.clock.before_ending(ENDING_SHARE), given["gap"], given["seed"])
    memory = options.memory_of(deadline.clock, given)
    with Line(given["quiet"]) as line:
        going = Sweep(
            subject,
            asked,
            limits,
            memory,
            lambda at: line.say(bar(at.done / at.total, at.left, f"{at.done} of {at.total}: {at.what}")),
        )
        deadline.last_words = lambda halted: _so_far(going.curve(), given, deadline.clock, halted)
        return going.run()


def _check_places(model: Path | None, plot: Path | None, output: Path | None) -> None:
    """What is to be written can be, and is not over what is read."""
    check_apart(plot, output)
    if plot:
        check_picture(plot)
        check_place(plot, FileKind.PICTURE, model)
    if output and output.suffix == ".json":
        check_place(output, FileKind.CURVE, model)
    elif output and output.is_file():
        raise BadInput(f"{output} is a file: name a folder for the plans, or FILE.json for what --json prints")


def _tell_nothing(given: Mapping[str, Any], clock: Clock, halted: bool) -> RematError:
    return options.tell_no_plan(halted, clock, {} if given["form"] == "json" else None)


def _so_far(curve: Curve, given: Mapping[str, Any], clock: Clock, halted: bool) -> RematError | None:
    """What to say when the time is up in the middle of something."""
    found = any(point.found for point in curve.points)
    return _tell(curve, given, halted) if found else _tell_nothing(given, clock, halted)


def _tell(curve: Curve, given: Mapping[str, Any], halted: bool) -> RematError | None:
    """Write the plans and the picture, and print the curve; what to end with, where there is no plan or somebody ended
    the search."""
    output, error = given["output"], Halted() if halted else _refusal(curve)
    in_file = output is not None and output.suffix == ".json"
    plans = _write_plans(curve, output) if output and not in_file else {}
    if in_file:
        write_whole(output, json.dumps(error_in(curves.as_object(curve, plans), error)) + "\n")
    if given["plot"]:
        draw_curve(given["plot"], curve)
    match given["form"]:
        case "json":
            options.say_object(curves.as_object(curve, plans), error)
        case "csv":
            click.echo(curves.as_csv(curve))
        case "md":
            click.echo(curves.as_markdown(curve))
        case _ if not given["quiet"]:
            click.echo(curves.as_table(curve))
            for note in sentences(curve.subject.notes):
                click.echo(f"note: {note}")
            for wrote in (f"{len(plans)} plans into {output}" if plans else output if in_file else None, given["plot"]):
                if wrote:
                    click.echo(f"wrote {wrote}")
    return error


def _write_plans(curve: Curve, folder: Path) -> dict[tuple[str, int], str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make the folder {folder}: {error.strerror}") from error
    written = {}
    for point in curve.points:
        if (planned := curve.planned(point)) is not None:
            path = folder / f"{curve.subject.stem}-{point.budget}-{point.method}.plan.json"
            for said in sentences(put(planned.recorded, path, planned.subject).notes):
                click.echo(f"remat: {said}", err=True)
            written[point.method, point.budget] = str(path)
    return written


def _refusal(curve: Curve) -> NoSchedule | None:
    """A curve without a single point is no answer."""
    if not any(point.found for point in curve.points):
        proved = all(point.status is Status.INFEASIBLE for point in curve.points)
        kind, why = (Infeasible, "proved: nothing fits") if proved else (NoPlan, "no plan was found within")
        least = "" if curve.least_peak is None else f"; the least peak of an order is {curve.least_peak} bytes"
        return kind(f"{why} any of these budgets{least}", curve.least_peak)
    return None
