"""`remat emit`: a plan becomes an ONNX model that runs that way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options
from remat_cli.saying.tables import table
from remat_cli.units import show_bytes, show_change, show_time

if TYPE_CHECKING:
    from remat_cli.actions.emitting import Emitted


@click.command(cls=options.GroupedCommand)
@click.argument("plan", type=options.FILE)
@click.option("--groups", type=click.Choice(["functions"]), help="Show a fusing backend its kernels, as functions.")
@options.output
@options.as_json
@options.quiet
def command(plan: Path, groups: str | None, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Write the rewritten model of PLAN.

    It has the plan's computes in order, with clones for what is computed again. The file is made for the session that
    the plan was solved for, and how to make that one is printed. A file for default options has a few small nodes more.

    \b
    remat emit train.plan.json
    remat emit train.plan.json -o train.remat.onnx
    """
    from remat_cli.actions import emitting
    from remat_cli.plans.planned import load_planned

    planned = load_planned(plan)
    emitted = emitting.emit(planned, groups == "functions")
    destination = emitting.place_of(planned, output)
    emitting.write(emitted, destination)
    if as_json:
        options.say_object(_object(emitted, destination))
    elif not quiet:
        click.echo(_words(emitted, destination))


def _object(emitted: Emitted, destination: Path) -> dict[str, Any]:
    found = emitted.rewritten
    return {
        "model": str(destination),
        "nodes": len(found.model.graph.node),
        "clones": found.clones,
        "guards": found.guards,
        "anchors": found.anchors,
        "functions": len(found.model.functions),
        "session": emitted.plan.recorded.session,
        "budget": emitted.plan.budget,
        "peak": {"strict": found.promise.strict, "default": found.promise.default},
        "baseline_peak": {"strict": emitted.before.strict, "default": emitted.before_by_default()},
        "time": found.promise.time,
        "baseline_time": emitted.before.time,
        "notes": emitted.notes(),
    }


def _words(emitted: Emitted, destination: Path) -> str:
    """What the model needs and costs, where it is, and the lines that run it."""
    found, plan = emitted.rewritten, emitted.plan.path
    said = [_predicted(emitted), *(f"note: {note}" for note in emitted.notes())]
    count, small = found.clones, found.guards + found.anchors + found.hidden_shapes
    added = f"{count} op{'' if count == 1 else 's'} computed again"
    added += f", {small} small nodes against reordering and merging" if small else ""
    said.append(f"wrote {destination}: {added}; next: remat verify {plan}")
    return "\n".join([*said, *_how_to_run(emitted, destination)])


def _how_to_run(emitted: Emitted, destination: Path) -> list[str]:
    """The lines that make the session that the plan is for."""
    from profiles.strict import in_python
    from remat_cli.runtime.c_session import BOUND_IN_CPP, CPP

    recorded = emitted.plan.recorded
    if not recorded.kind.keeps_order:
        bound = (
            f"\n\nand for each run, with what `remat.in_place` lists:\n\n{BOUND_IN_CPP}" if recorded.in_place else ""
        )
        return [f"Run it with default options. C++ and C# plan with --optimize disabled, and set:\n\n{CPP}{bound}"]
    if recorded.placement:
        return [f"Run it in Python with: session = remat_cli.session({str(emitted.plan.path)!r})"]
    return [f"Run {destination} in a session with these options:\n\n{in_python()}"]


def _predicted(emitted: Emitted) -> str:
    before, after = emitted.before, emitted.rewritten.promise
    rows = [["predicted", "before", "after", "change"]]
    for name, old, new, show in (
        ("peak, strict session", before.strict, after.strict, show_bytes),
        ("peak, default options", before.default, after.default, show_bytes),
        ("time, strict session", before.time, after.time, show_time),
    ):
        if old and new:
            rows.append([name, show(old), show(new), show_change(old, new)])
    return table(rows)
