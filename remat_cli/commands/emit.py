"""`remat emit`: a plan becomes an ONNX model that runs that way."""

from __future__ import annotations

from pathlib import Path

import click

from remat_cli.commands import options


@click.command()
@click.argument("plan", type=options.FILE)
@click.option("--groups", type=click.Choice(["functions"]), help="Show a fusing backend its kernels, as functions.")
@options.output
@options.as_json
@options.quiet
def command(plan: Path, groups: str | None, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Rewrite the model of PLAN: its computes in order, clones for what is computed again.

    The file is made for the session that the plan was solved for: the strict one, whose options are printed, or
    onnxruntime's default options, with what makes order and clones survive them.
    """
    from remat_cli.actions import emitting

    emitting.run(plan, output, as_json, quiet, groups == "functions")
