"""`remat shrink`: any model in less memory, in one command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli import usual
from remat_cli.actions.interrupts import Deadline, Halted, listening
from remat_cli.commands import options
from remat_cli.errors import NoPlan, RematError

if TYPE_CHECKING:
    from remat_cli.actions.shrinking.shrink import Shrinking, Shrunk
    from remat_cli.actions.shrinking.ways import TriedWay
    from remat_cli.saying.progress import Line


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE)
@click.option("--feeds", type=options.FILE, help="Inputs as an .npz file; by default random and valid.")
@options.dims
@click.option("--also", type=options.DIMS, multiple=True, help="Other sizes for the same file: height=320,width=320.")
@click.option("--max-slower", type=options.SHARE, default=usual.SLOWER, show_default=True, help="The most extra time.")
@click.option(
    "--for",
    "target",
    type=click.Choice(["python", "c", "stock"]),
    default="python",
    show_default=True,
    help="What runs it: remat.session, a program in C, C++ or C#, or stock ONNX Runtime.",
)
@options.time_for_all(usual.SHRINK_TIME)
@options.seed
@options.force
@options.output
@options.as_json
@options.quiet
def command(model: Path, **given: Any) -> None:
    """Run MODEL in less memory: try every way, measure each, and say what to do.

    Each way runs in a process of its own, which is metered from outside, loading included. MODEL.small.onnx and what
    goes with it are written only where they hold clearly less than two options of ONNX Runtime do.

    \b
    remat shrink net.onnx --feeds inputs.npz
    remat shrink net.onnx --dim batch=1 --for c
    """
    from remat_cli.actions.shrinking.asked import ShrinkListeners, ShrinkQuestion
    from remat_cli.actions.shrinking.shrink import Shrinking, check_places, folder_for
    from remat_cli.saying.progress import Line

    asked = ShrinkQuestion(
        feeds=given["feeds"],
        dims=dict(given["dims"]),
        also=given["also"],
        slower=given["max_slower"],
        target=given["target"],
        seed=given["seed"],
    )
    output = given["output"] or model.with_name(f"{model.name.removesuffix('.onnx')}.small.onnx")
    check_places(output, asked.target, model)
    clock = options.clock_of(given)
    with listening() as interrupts, folder_for(output) as folder, Line(given["quiet"] or given["as_json"]) as line:
        clock = clock.unless(interrupts)
        table = _Table(line, given["quiet"] or given["as_json"])
        memory = options.memory_of(clock, given)
        work = Shrinking(model, output, folder, asked, clock, ShrinkListeners(table.row, line.say), memory)
        with Deadline(clock, lambda halted: _last_words(work, given, halted)) as deadline:
            work.run()
            deadline.met()
            line.say("")
            if work.found.choice is None:
                raise NoPlan("time was up before the model had run; give more with --time-limit")
            deadline.answer(lambda halted: _tell(work.finish(), given, halted))


class _Table:
    """Rows as they come."""

    def __init__(self, line: Line, quiet: bool) -> None:
        self.line, self.quiet = line, quiet
        self.first: TriedWay | None = None

    def row(self, tried: TriedWay) -> None:
        from remat_cli.commands import shrink_answer

        if self.quiet:
            return
        self.line.say("")
        if self.first is None:
            click.echo(shrink_answer.head())
        if self.first is None or tried.way.sets == self.first.way.sets:  # the model as it is, at other sizes too
            self.first = tried
        click.echo(shrink_answer.row(tried, self.first))


def _last_words(work: Shrinking, given: dict[str, Any], halted: bool) -> RematError | None:
    """Time is up, or the user has had enough: what there is by then stays."""
    if work.found.choice is None:
        shutil.rmtree(work.folder, ignore_errors=True)
        return options.tell_no_plan(halted, given["as_json"])
    work.found.stopped = True
    found = work.finish()
    shutil.rmtree(work.folder, ignore_errors=True)
    return _tell(found, given, halted)


def _tell(found: Shrunk, given: dict[str, Any], halted: bool) -> Halted | None:
    """Say what was found; what to end with, if somebody ended it."""
    from remat_cli.commands import shrink_answer

    error = Halted() if halted else None
    if given["as_json"]:
        options.say_object(shrink_answer.as_object(found), error)
    elif not given["quiet"]:
        click.echo("\n".join(shrink_answer.advice(found)))
    return error
