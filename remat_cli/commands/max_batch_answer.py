"""What `max-batch` does once its flags are read, and says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import click

from remat_cli.actions.interrupts import Deadline, Halted, listening
from remat_cli.actions.largest import BASELINES, SizeQuestion, find_largest
from remat_cli.actions.profiling import Steps
from remat_cli.actions.scaling import Scaled, SizedStep, scale_step
from remat_cli.commands import methods, options
from remat_cli.errors import InTheWay, Usage
from remat_cli.formats.files import stem_of
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.gradient.optimizers import Recipe
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.training import Options
from remat_cli.notes.words import sentences
from remat_cli.plans.planned import Planned
from remat_cli.plans.sizes import Largest
from remat_cli.saying import sizes
from remat_cli.saying.progress import Line
from remat_cli.units import show_time
from solvers.problem import Limits


def largest(model: Path, given: Mapping[str, Any]) -> None:
    """Search for the largest size, and say what was found."""
    check_place(given["output"], FileKind.PLAN, model)
    asked, step = _asked(given), _step(given)
    asked.check()
    clock = options.clock_of(given)
    said: dict[str, Any] | None = {} if given["as_json"] else None
    measuring = Steps()
    with (
        listening() as interrupts,
        Line(given["quiet"]) as line,
        Deadline(clock.unless(interrupts), lambda halted: options.tell_no_plan(halted, clock, said)) as deadline,
        measuring.read_by(lambda timing: line.say(f"measuring {timing.what[:60]}")),
    ):
        steps = scale_step(model, step, measuring)
        found = _found(model, steps, asked, given, deadline, line)
        deadline.met()
        line.say("")
        deadline.answer(partial(_tell, model, steps, found, given))


def _asked(given: Mapping[str, Any]) -> SizeQuestion:
    named = given["baselines"]
    return SizeQuestion(
        budget=given["budget"],
        method=given["method"],
        share=given["share"],
        baselines=BASELINES if named is None else methods.methods_named(named),
        step=given["step"],
        session=given["session"],
        pieces=options.asked_pieces(given),
    )


def _step(given: Mapping[str, Any]) -> SizedStep:
    largest = [name for name, size in given["sized"] if size is None]
    if len(largest) > 1:
        raise Usage(f"one dimension is made largest: {' or '.join(largest)}?")
    return SizedStep(
        dim=next(iter(largest), None),
        dims={name: size for name, size in given["sized"] if size is not None},
        costs=given["costs"],
        estimate=given["estimate"],
        measure=given["profiled"] or (),
        here=given["measure"],
        forward=given["forward"],
        in_place=options.asked_in_place(given),
        options=Options(
            loss=given["loss"],
            logits=given["logits"],
            class_axis=given["class_axis"],
            choice=Choice(options.names_among(given["wrt"])),
            recipe=Recipe(given["optimizer"]),
            freeze_bn=given["freeze_bn"],
            train=given["train"],
        ),
        session=given["session"],
    )


def _found(
    model: Path, steps: Scaled, asked: SizeQuestion, given: Mapping[str, Any], deadline: Deadline, line: Line
) -> Largest:
    memory = options.memory_of(deadline.clock, given)

    def say(what: str) -> None:
        line.say(f"{show_time(deadline.clock.left() * 1e9)} left  {steps.dim}: {what}")

    def keep(found: Largest) -> None:
        deadline.last_words = partial(_tell, model, steps, found, given)

    limits = Limits(deadline.clock, seed=given["seed"])
    return find_largest(steps.at, asked, limits, memory, steps.measured, say, keep)


def _tell(model: Path, steps: Scaled, found: Largest, given: Mapping[str, Any], halted: bool) -> Halted | None:
    """Write the plan, and say what was found; what to end with, if somebody ended the search."""
    error = Halted() if halted else None
    usual = model.with_name(f"{stem_of(model)}.{steps.dim}{found.size}.plan.json")
    path = _saved(found.plan, given["output"] or usual)
    if given["as_json"]:
        options.say_object(sizes.as_object(found, steps.dim, str(path)), error)
    elif not given["quiet"]:
        click.echo(sizes.as_text(found, steps.dim))
        for note in found.plan.notes:
            click.echo(f"note: {note}")
        click.echo(f"wrote {path}")
    return error


def _saved(plan: Planned, path: Path) -> Path:
    """Where the plan was written with its model: what was searched for long is not lost for files in the way."""
    stem, tries = stem_of(path), count(2)
    while True:
        try:
            notes = plan.saved(path)
        except InTheWay as why:
            path = path.with_name(f"{stem}-{next(tries)}.plan.json")
            click.echo(f"remat: {why.args[0].partition(':')[0]}: the plan is {path.name}", err=True)
        else:
            for said in sentences(notes):
                click.echo(f"remat: {said}", err=True)
            return path
