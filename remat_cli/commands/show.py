"""`remat show`: a plan as a summary, as statements, or as a picture of memory over time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remat_cli.commands import options

if TYPE_CHECKING:
    from remat_cli.saying.showing import Shown


@click.command()
@click.argument("plan", type=options.FILE)
@click.option("--statements", is_flag=True, help="Print the program: one statement a line.")
@click.option("--plot", type=options.FILE, help="Draw memory over time, before and after, into a .png or .svg file.")
@click.option(
    "--fusion", type=options.FUSION, default="ideal", help="Bytes moved if all is fused, or as onnxruntime does."
)
@options.as_json
def command(plan: Path, statements: bool, plot: Path | None, fusion: str, as_json: bool) -> None:
    """Show what PLAN does and what it buys, or what a model or problem needs as it stands."""
    from remat_cli.saying import showing

    found = showing.shown(plan, fusion=fusion)
    if plot:
        _draw(plot, plan, found)
    if as_json:
        click.echo(json.dumps(showing.as_object(found, statements)))
        return
    click.echo(showing.program(found) if statements else showing.summary(found))
    if plot:
        click.echo(f"wrote {plot}")


def _draw(plot: Path, plan: Path, found: Shown) -> None:
    from remat_cli.formats.files import check_apart
    from remat_cli.saying.plotting import draw_memory

    check_apart(plot, plan, found.subject.path)
    draw_memory(plot, found.before, found.after, found.recorded.budget if found.recorded else 0)
