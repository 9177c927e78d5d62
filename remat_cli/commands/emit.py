"""`remat emit`: a plan becomes an ONNX model that runs that way."""

from __future__ import annotations

from pathlib import Path

import click

from remat_cli.commands import options


@click.command()
@click.argument("plan", type=options.FILE)
@click.option("--groups", type=click.Choice(["functions"]), help="Show a fusing backend its kernels, as functions.")
@click.option(
    "--strict-only",
    is_flag=True,
    help="Only for the strict session: without the small kernels that default options need.",
)
@options.output
@options.as_json
@options.quiet
def command(plan: Path, groups: str | None, strict_only: bool, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Rewrite the model of PLAN: its computes in order, clones for what is computed again.

    One file keeps both promises: the plan exactly in the strict session, whose options are printed, and the plan's
    order and clones under onnxruntime's default options.
    """
    from remat_cli.actions import emitting

    emitting.run(plan, output, as_json, quiet, groups == "functions", strict_only)
