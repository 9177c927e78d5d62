"""`remat verify`: run both models in onnxruntime, compare their bytes, measure their peaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options
from remat_cli.errors import error_in
from remat_cli.formats.kinds import FileKind, check_place
from solvers.clock import FOREVER_SECONDS, Clock

if TYPE_CHECKING:
    from remat_cli.actions.verifying import Verified
    from remat_cli.plans.planned import Planned
    from remat_cli.saying.progress import Line

TIMING_SECONDS = 6.0  # seconds


@click.command(cls=options.GroupedCommand)
@click.argument("plan", type=options.FILE)
@click.option("--model", type=options.FILE, help="The rewritten model; by default the one beside the plan's model.")
@click.option("--feeds", type=options.FILE, help="Inputs as an .npz file; by default random and valid.")
@options.seed
@click.option("--provider", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--timeout", type=options.TIME, default="10m", show_default=True, help="For each run of a model.")
@click.option("--time-limit", type=options.TIME, help="For all runs; what had no time is not as promised.")
@click.option("--rtol", type=click.FloatRange(0), default=0.0, help="How far results may be off, as a share of each.")
@click.option("--atol", type=click.FloatRange(0), default=0.0, help="And by how much besides; by default: same bits.")
@click.option(
    "--level",
    type=click.Choice(["disabled", "basic", "extended", "all"]),
    default="all",
    show_default=True,
    help="Of the default session's optimizations, as a program sets it.",
)
@click.option("--time", "timed", is_flag=True, help="Also time both models, their runs taking turns.")
@click.option("-o", "--output", type=options.FILE, help="Also write what --json prints, as a report.")
@options.as_json
@options.quiet
def command(plan: Path, model: Path | None, output: Path | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Run the model of PLAN and its rewriting in ONNX Runtime, and compare results and memory.

    Each model runs in a process of its own: in the strict session, under default options, and once more with the
    plan's allocator, for what the process holds. The rewritten model is written first if it is not there; where that
    of another plan stands, it stays. The exit code is 6 if the session that the plan is for does not do as promised,
    and 5 if time was up before that was known.

    \b
    remat verify train.plan.json
    remat verify train.plan.json --time
    """
    from remat_cli.actions import emitting
    from remat_cli.commands import verify_answer
    from remat_cli.formats.files import write_whole
    from remat_cli.plans.planned import load_planned
    from remat_cli.saying.progress import Line

    clock = options.clock_of({"time_limit": given.pop("time_limit") or FOREVER_SECONDS})
    with Line(quiet) as line:
        line.say(f"reading {plan} ...")
        planned = load_planned(plan)
        found, rewritten = _verified(planned, plan, model, output, given, line, clock)
    error = found.refusal("the rewritten model" if rewritten is None else rewritten.name)
    said = error_in(verify_answer.as_object(found, rewritten), error)
    if output:
        write_whole(output, json.dumps(said, indent=1) + "\n")
    if as_json:
        options.say_object(said)
    elif not quiet:
        click.echo("\n".join((verify_answer.summary(found), *verify_answer.times(found, planned))))
        if rewritten is None:
            there = emitting.place_of(planned).name
            click.echo(
                f"{there} was not made from this plan, so a model was made for this run; `remat emit {plan}` writes it."
            )
    if error is not None:
        raise error


def _verified(
    planned: Planned,
    plan: Path,
    model: Path | None,
    output: Path | None,
    given: dict[str, Any],
    line: Line,
    clock: Clock,
) -> tuple[Verified, Path | None]:
    """What came of the runs, and the rewritten model, which is made if it is not there.

    None for its path where the model at its place is of another plan: that stays, and this one's is made for the runs.
    """
    from remat_cli.actions import emitting, verifying
    from remat_cli.checking.compare import Tolerance
    from remat_cli.checking.processes import BegunRun
    from remat_cli.events import EventQueue

    emitting.graph_of(planned)
    rewritten = model or emitting.place_of(planned)
    check_place(output, FileKind.VERIFIED, plan, planned.subject.path, rewritten)
    if not rewritten.is_file():
        line.say(f"writing {rewritten} ...")
        emitting.write(emitting.emit(planned), emitting.place_of(planned, model))
    near = Tolerance(given.pop("rtol"), given.pop("atol"))
    seconds = TIMING_SECONDS if given.pop("timed") else 0.0
    events: EventQueue[BegunRun] = EventQueue()
    trial = verifying.Trial(**given, clock=clock, near=near, seconds=seconds, events=events)
    with events.read_by(lambda run: line.say(f"{run} ...")):
        if model is None and not verifying.is_made_from(rewritten, plan, planned):
            line.say(f"rewriting {planned.subject.path} ...")
            return verifying.verified(planned, trial), None
        return verifying.tried(planned, rewritten, verifying.promise_of(rewritten, plan, planned), trial), rewritten
