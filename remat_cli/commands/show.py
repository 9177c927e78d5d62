"""`remat show`: a plan as a summary, as statements, or as a picture of memory over time."""

from __future__ import annotations

from pathlib import Path

import click

from remat_cli.commands import options


@click.command()
@click.argument("plan", type=options.FILE)
@click.option("--statements", is_flag=True, help="Print the program: one statement a line.")
@click.option("--plot", type=options.FILE, help="Draw memory over time, before and after, into a .png or .svg file.")
@click.option(
    "--fusion", type=options.FUSION, default="ideal", help="Bytes moved if all is fused, or as onnxruntime does."
)
@options.as_json
def command(plan: Path, statements: bool, plot: Path | None, fusion: str, as_json: bool) -> None:
    """Show what PLAN does and what it buys."""
    from remat_cli.actions import showing

    showing.run(plan, statements, plot, as_json, fusion)
