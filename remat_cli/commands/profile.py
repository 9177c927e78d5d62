"""`remat profile`: what each op costs, measured here or reckoned from paper, in a file to make schedules from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli.commands import options


def _parse_batches(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    sizes = [part.strip() for part in text.split(",")]
    if not all(size.isdigit() and int(size) > 0 for size in sizes):
        raise click.BadParameter(f"'{text}' is no list of batch sizes: write --batch 1,8,32")
    return tuple(sorted({int(size) for size in sizes}))


@click.command()
@click.argument("model", type=options.FILE)
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", show_default=True)
@click.option("--estimate", metavar="DEVICE", help="No kernel is run: a device from paper (v100, h100, ...), or flops.")
@click.option(
    "--batch", "batches", callback=_parse_batches, help="Profile at each size and fit times over it: --batch 1,8,32."
)
@click.option("--batch-dim", help="Which symbolic dimension --batch sets; by default the only one, or `batch`.")
@click.option("--compare", is_flag=True, help="Run the whole graph and print predicted against measured time.")
@click.option("--dry-run", is_flag=True, help="Say how much there is to measure and about how long it takes.")
@click.option("--strict", is_flag=True, help="An op that cannot be measured is an error, not an estimate.")
@click.option("--no-cache", is_flag=True, help="Measure everything again, and keep nothing.")
@click.option("--no-whole", is_flag=True, help="Do not run the whole graph: ops stand as they are alone.")
@click.option("--threads", type=click.IntRange(1), help="Threads for each op; by default one for each core.")
@click.option("--time-limit", type=options.TIME, default="45s", show_default=True, help="For all the measuring.")
@options.dims
@options.output
@options.as_json
@options.quiet
def command(model: Path, **given: Any) -> None:
    """Find out what each op of MODEL costs; writes MODEL.costs.yaml.

    Each kind of op is timed alone, once, by ONNX Runtime, then the whole graph is run and the times are scaled to
    agree with it. What was measured is kept in the user's cache. Entries marked `pinned: true` are left as they are.
    """
    from remat_cli.actions import profiling

    profiling.run(model, profiling.Settings(**given))
