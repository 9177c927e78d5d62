"""`remat problem`: the bare scheduling problem of a model, for other tools and for reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options

if TYPE_CHECKING:
    from remat_cli.planning.subject import Subject


@click.command()
@click.argument("model", type=options.FILE)
@click.option("--costs", type=options.FILE, help="What the ops cost; by default MODEL.costs.yaml, else an estimate.")
@options.dims
@options.output
@options.as_json
@options.quiet
def command(
    model: Path,
    costs: Path | None,
    dims: tuple[tuple[str, int], ...],
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the scheduling problem of MODEL.onnx: what each op costs, reads and writes, and the sizes of values."""
    from remat_cli.formats import problemfile
    from remat_cli.formats.files import check_apart
    from remat_cli.planning.loading import load_subject

    subject = load_subject(model, costs, dict(dims))
    path = output or subject.beside(".problem.json")
    check_apart(path, subject.path)
    problemfile.write(subject.named, path)
    figures = _figures(subject)
    if as_json:
        click.echo(json.dumps({"problem": str(path), **figures, "notes": list(subject.notes)}))
    elif not quiet:
        for note in subject.notes:
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
    from remat_cli.saying.units import show_bytes, show_time

    return (
        f"{path}: {figures['nodes']} ops, {figures['values']} values; every op once takes "
        f"{show_time(figures['baseline_cost'])} and peaks at {show_bytes(figures['baseline_peak'])}, "
        f"{show_bytes(figures['resident'])} of it inputs and weights"
    )
