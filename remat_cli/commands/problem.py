"""`remat problem`: the bare scheduling problem of a model, for other tools and for reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.units import show_bytes, show_time

if TYPE_CHECKING:
    from remat_cli.planning.subjects.subject import Subject


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE)
@click.option("--costs", type=options.FILE, help="What the ops cost; by default MODEL.costs.yaml, else an estimate.")
@click.option("--chain", "as_chain", is_flag=True, help="As a chain of stages in Rotor's form, MODEL.chain.json.")
@options.dims
@options.output
@options.as_json
@options.quiet
def command(model: Path, **given: Any) -> None:
    """Write the scheduling problem of MODEL.

    The file has what each op costs, reads and writes, and the sizes of values. `remat solve` takes it too.

    \b
    remat problem train.onnx
    remat problem train.onnx --chain
    """
    from remat_cli.formats import chainfile, problemfile
    from remat_cli.formats.files import write_whole
    from remat_cli.notes.words import sentences
    from remat_cli.planning.loading import load_subject

    subject = load_subject(model, given["costs"], dict(given["dims"]))
    as_chain = given["as_chain"]
    path = given["output"] or subject.beside(".chain.json" if as_chain else ".problem.json")
    check_place(path, FileKind.CHAIN if as_chain else FileKind.PROBLEM, subject.path)
    if as_chain:
        write_whole(path, chainfile.chain_text(subject.problem, subject.path))
    else:
        problemfile.write(subject.named, path)
    figures = _figures(subject)
    if given["as_json"]:
        options.say_object({"problem": str(path), **figures, "notes": list(sentences(subject.notes))})
    elif not given["quiet"]:
        for note in sentences(subject.notes):
            click.echo(f"note: {note}", err=True)
        click.echo(_line(path, figures))


def _figures(subject: Subject) -> dict[str, Any]:
    outcome = subject.before()
    return {
        "nodes": len(subject.nodes),
        "values": len(subject.values),
        "resident": subject.problem.resident,
        "baseline_peak": outcome.peak,
        "baseline_cost": outcome.cost,
    }


def _line(path: Path, figures: dict[str, Any]) -> str:
    return (
        f"{path}: {figures['nodes']} ops, {figures['values']} values; every op once takes "
        f"{show_time(figures['baseline_cost'])} and peaks at {show_bytes(figures['baseline_peak'])}, "
        f"{show_bytes(figures['resident'])} of it inputs and weights"
    )
