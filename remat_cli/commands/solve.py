"""`remat solve`: a plan that fits the budget at the least extra time, with a proof of how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli.commands import options

METHOD_OPTIONS = (
    "splits",
    "no_stages",
    "lp",
    "rounding",
    "samples",
    "slots",
    "segments",
    "snapshots",
    "objective",
    "between_groups",
    "fusion",
)


@click.command()
@click.argument("model", type=options.FILE, required=False)
@options.budget
@click.option("--method", default="milp", show_default=True, help="One of `remat solve --list`, or all.")
@click.option(
    "--session",
    type=click.Choice(["strict", "default"]),
    default="strict",
    show_default=True,
    help="Which session the plan is for: one whose options can be set, or onnxruntime as it comes.",
)
@click.option(
    "--allocator",
    type=click.Choice(["planned", "arena"]),
    help="In the strict session: each value in its planned place (the default), or the runtime's arena, capped.",
)
@click.option("--costs", type=options.FILE, help="What the ops cost; by default MODEL.costs.yaml, else an estimate.")
@click.option("--minimize", type=click.Choice(["cost", "peak"]), default="cost", show_default=True)
@click.option("--max-overhead", type=options.SHARE, help="With --minimize peak: at most this much extra time.")
@click.option("--lp", "lp_bound", is_flag=True, help="Print the bound of the linear relaxation and the gap to it.")
@click.option("--from", "known", type=options.FILE, multiple=True, help="A known plan, as a candidate to beat.")
@click.option(
    "--reorder/--no-reorder",
    default=None,
    help="First compute the ops in another order; by default only if the model's own leads to no plan.",
)
@click.option("--list", "list_methods", is_flag=True, help="List the methods and what they can do.")
@click.option("--csv", "as_csv", is_flag=True, help="With --method all: comma-separated values on stdout.")
@click.option("--splits", type=click.IntRange(1), help="milp-paper: stages cut in so many (section 4.10).")
@click.option("--no-stages", is_flag=True, default=None, help="milp-paper: the unpartitioned program.")
@click.option("--rounding", type=click.Choice(["deterministic", "randomized"]), help="lp-rounding.")
@click.option("--samples", type=click.IntRange(1), help="lp-rounding: how many random roundings.")
@click.option("--relaxation", "lp", type=click.Choice(["improved", "paper"]), help="lp-rounding: whose program.")
@click.option("--slots", type=click.IntRange(1), help="rotor: units the memory is divided into.")
@click.option("--snapshots", type=click.IntRange(1), help="griewank: how many; by default all are tried.")
@click.option("--segments", type=click.IntRange(1), help="periodic: how many.")
@click.option("--objective", type=click.Choice(["time", "traffic"]), help="min-cut: what to make least.")
@click.option("--between-groups", is_flag=True, default=None, help="min-cut: extend cuts between fusion groups.")
@click.option("--fusion", type=options.FUSION, help="min-cut: which ops share a kernel, where traffic is counted.")
@options.dims
@options.time_limit
@options.gap
@options.seed
@options.threads
@options.output
@options.as_json
@options.quiet
@options.verbose
def command(model: Path | None, **given: Any) -> None:
    """Find a schedule of MODEL (.onnx or .problem.json) within a memory budget.

    Without MODEL, takes the only *.costs.yaml in the working directory, which says whose costs they are.
    """
    from remat_cli.actions import solving

    if given["list_methods"]:
        click.echo(solving.list_methods(given["as_json"]))
        return
    settings = solving.Settings(
        own={name: given[name] for name in METHOD_OPTIONS if given.get(name) is not None},
        **{name: value for name, value in given.items() if name in solving.Settings.__dataclass_fields__},
    )
    solving.run(model, settings)
