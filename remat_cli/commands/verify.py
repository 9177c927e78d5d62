"""`remat verify`: run both models in onnxruntime, compare their bytes, measure their peaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli.commands import options
from solvers.clock import FOREVER_SECONDS


@click.command(cls=options.GroupedCommand)
@click.argument("plan", type=options.FILE)
@click.option("--model", type=options.FILE, help="The rewritten model; by default the one beside the plan's model.")
@click.option("--feeds", type=options.FILE, help="Inputs as an .npz file; by default random and valid.")
@options.seed
@click.option("--provider", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--timeout", type=options.TIME, default="10m", show_default=True, help="For each run of a model.")
@click.option("--time-limit", type=options.TIME, help="For all runs; what had no time is not as promised.")
@click.option("--rtol", type=options.TOLERANCE, default=0.0, help="How far results may be off, as a share of each.")
@click.option("--atol", type=options.TOLERANCE, default=0.0, help="And by how much besides; by default: same bits.")
@click.option(
    "--level",
    type=click.Choice(["disabled", "basic", "extended", "all"]),
    default="all",
    show_default=True,
    help="Of the default session's optimizations, as a program sets it.",
)
@click.option("--time", "timed", is_flag=True, help="Also time both models, their runs taking turns.")
@click.option("-o", "--output", type=options.FILE, help="Also write what --json prints, as a report.")
@options.as_json
@options.quiet
def command(plan: Path, model: Path | None, output: Path | None, **given: Any) -> None:
    """Run the model of PLAN and its rewriting in ONNX Runtime, and compare results and memory.

    Each model runs in a process of its own: in the strict session, under default options, and once more with the
    plan's allocator, for what the process holds. The rewritten model is written first if it is not there; where that
    of another plan stands, it stays. The exit code is 6 if the session that the plan is for does not do as promised,
    and 5 if time was up before that was known.

    \b
    remat verify train.plan.json
    remat verify train.plan.json --time
    """
    from remat_cli.commands.verify_answer import verify

    limit = given.pop("time_limit")
    given["clock"] = options.clock_of({"time_limit": FOREVER_SECONDS if limit is None else limit})
    verify(plan, model, output, given)
