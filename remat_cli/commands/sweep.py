"""`remat sweep`: what each budget costs, by method, as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli import usual
from remat_cli.commands import methods, options


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE, required=False)
@click.option(
    "--budgets",
    type=options.BUDGETS,
    default=usual.BUDGETS,
    show_default=True,
    help="50%,60%,8GB, or 30%..100%/8 for eight; /8: from the least that suffices to what the model holds.",
)
@methods.several
@options.runtime
@options.costs
@click.option("--csv", "form", flag_value="csv", help="Comma-separated values on stdout.")
@click.option("--md", "form", flag_value="md", help="A table in Markdown on stdout.")
@click.option("--json", "form", flag_value="json", help="One JSON object on stdout, and nothing else there.")
@click.option("--measure", is_flag=True, help="Run the rewritten models, in turn: steps a second, and what they hold.")
@click.option("--plot", type=options.FILE, help="Draw the curves into a .svg, .png or .pdf file.")
@click.option(
    "-o",
    "--output",
    type=options.PLACE,
    help="A folder for the plans, one a point, which is made if need be; or FILE.json, for what --json prints.",
)
@options.in_place
@options.pieces
@options.dims
@options.time_for_all(usual.SWEEP_TIME)
@options.work_limit
@options.gap
@options.seed
@options.force
@options.quiet
def command(model: Path | None, **given: Any) -> None:
    """Solve MODEL for many budgets, by one or more methods.

    MODEL is a .onnx or .problem.json file. Without it, the only *.costs.yaml in the working directory names it. Points
    share plans and bounds, so a curve takes little longer than a single solve, and a larger budget never costs more.

    \b
    remat sweep train.onnx --plot curve.svg
    remat sweep train.onnx --budgets 30%..100%/8 --methods auto,chen-greedy
    """
    from remat_cli.commands.sweep_answer import sweep

    sweep(model, given)
