"""`remat verify`: run both models in onnxruntime, compare their bytes, measure their peaks."""

from __future__ import annotations

from pathlib import Path

import click

from remat_cli.commands import options


@click.command()
@click.argument("plan", type=options.FILE)
@click.option("--model", type=options.FILE, help="The rewritten model; by default the one beside the plan's model.")
@click.option("--feeds", type=options.FILE, help="Inputs as an .npz file; by default random and valid.")
@options.seed
@click.option(
    "--cap/--no-cap", default=None, help="Also run in an arena capped at the budget; by default if the plan is for one."
)
@click.option("--provider", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--timeout", type=options.TIME, default="10m", show_default=True, help="For each run of a model.")
@click.option("-o", "--output", type=options.FILE, help="Also write what --json prints, as a report.")
@options.as_json
@options.quiet
def command(
    plan: Path,
    model: Path | None,
    feeds: Path | None,
    seed: int,
    cap: bool | None,
    provider: str,
    timeout: float,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the model of PLAN and its rewriting in onnxruntime: same bytes out, peak within budget?

    Each model runs in a process of its own, in the strict session and under default options, and once more with the
    plan's allocator, for what the process holds. Emits the rewritten model first if it is not there. Exit code 6 if the
    session that the plan is for does not do as promised.
    """
    from remat_cli.actions import verifying

    verifying.run(plan, verifying.Settings(model, feeds, seed, cap, provider, timeout, output, as_json, quiet))
