"""`remat profile`: what each op costs, measured here or reckoned from paper, in a file to make schedules from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli import usual
from remat_cli.commands import options


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE)
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", show_default=True)
@options.estimate("No kernel is run")
@click.option(
    "--batch", "batches", type=options.SIZES, help="Profile at each size and fit times over it: --batch 1,8,32."
)
@click.option("--batch-dim", help="Which symbolic dimension --batch sets; by default the only one, or `batch`.")
@click.option("--compare", is_flag=True, help="Run the whole graph and print predicted against measured time.")
@click.option("--dry-run", is_flag=True, help="Say how much there is to measure and about how long it takes.")
@click.option("--strict", is_flag=True, help="An op that cannot be measured is an error, not an estimate.")
@click.option("--no-cache", is_flag=True, help="Measure everything again, and keep nothing.")
@click.option("--no-whole", is_flag=True, help="Do not run the whole graph: ops stand as they are alone.")
@options.runtime
@click.option("--threads", type=click.IntRange(1), help="Threads for each op; by default one for each core.")
@click.option(
    "--time-limit",
    type=options.TIME,
    default=usual.PROFILE_TIME,
    show_default=True,
    help="For all of it; what is not measured by then is estimated.",
)
@options.optimize
@options.dims
@options.output
@options.as_json
@options.quiet
def command(model: Path, **given: Any) -> None:
    """Measure what each op of MODEL costs, and write MODEL.costs.yaml.

    ONNX Runtime runs each kind of op alone, then the whole graph, and the times are scaled to agree with it. What was
    measured is kept in the user's cache. Entries marked `pinned: true` are left as they are.

    \b
    remat profile train.onnx
    remat profile train.onnx --estimate h100
    """
    if not (given["estimate"] or given["dry_run"]):
        from profiles.server import server

        server()  # it begins while this process still imports
    from remat_cli.commands.profile_answer import measure

    measure(model, given)
