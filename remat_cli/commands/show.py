"""`remat show`: plans, and models as they stand, as a summary, as statements, or as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli.commands import options


@click.command(cls=options.GroupedCommand)
@click.argument("files", type=options.FILE, nargs=-1, required=True)
@click.option("--statements", is_flag=True, help="Print the program: one statement a line.")
@click.option("--breakdown", is_flag=True, help="What fills the memory at the peak of each; with --plot, as bars.")
@click.option("--chart", is_flag=True, help="Draw memory over time as text.")
@click.option("--plot", type=options.FILE, help="Draw memory over time into a .png, .svg or .pdf file.")
@click.option("--matrices", type=options.FILE, help="Draw what each stage computes (R) and finds in memory (S).")
@click.option("--html", "web", type=options.FILE, help="Write one page to look at in a browser; it needs no network.")
@click.option("--curve", type=options.FILE, help="With --html: what `remat sweep --json` printed, to be drawn there.")
@click.option("--csv", "as_csv", is_flag=True, help="With --breakdown: comma-separated values on stdout.")
@click.option(
    "--fusion", type=options.FUSION, default="ideal", help="Bytes moved if all is fused, or as onnxruntime does."
)
@click.option("--costs", type=options.FILE, help="Of a model: what its ops cost; by default MODEL.costs.yaml.")
@options.dims
@options.as_json
@options.quiet
def command(files: tuple[Path, ...], **given: Any) -> None:
    """Show what each plan of FILES does; of models and problems, what they need as they stand.

    \b
    remat show train.plan.json
    remat show train.plan.json --plot memory.png --html train.html
    remat show *.onnx --breakdown
    """
    from remat_cli.commands.show_answer import show

    show(files, given)
