"""`remat shrink`: any model in less memory, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli import usual
from remat_cli.commands import options


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
@options.work_limit
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
    from remat_cli.commands.shrink_answer import shrink

    shrink(model, given)
