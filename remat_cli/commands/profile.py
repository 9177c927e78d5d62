"""`remat profile`: what each op costs, measured here or reckoned from paper, in a file to make schedules from.

Invariant: the file is written whole, and only once every op has a cost; pinned entries of an earlier file stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli import usual
from remat_cli.commands import options
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.units import show_time

if TYPE_CHECKING:
    from profiles.costs import Costs
    from profiles.survey import SurveyProgress
    from remat_cli.actions.profiling import Profiled, ProfileQuestion
    from remat_cli.actions.whole_graph import TimeDifference
    from solvers.clock import Clock

PROFILING_SHARE = 0.7  # of the time left, where the whole graph is to be run again and compared


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
    clock = options.clock_of(given)
    if not (given["estimate"] or given["dry_run"]):
        from profiles.server import server

        server()  # it begins while this process still imports
    from profiles import costfile
    from remat_cli.actions import profiling

    asked = _asked(given)
    model = options.optimized(model, given["optimize"])
    if given["dry_run"]:
        _tell_ahead(model, asked, given["as_json"])
        return
    destination = given["output"] or costfile.beside(model)
    check_place(destination, FileKind.COSTS, model)
    found = _profiled(model, asked, clock.share(PROFILING_SHARE) if given["compare"] else clock, given["quiet"])
    costs = profiling.write(found, model, destination)
    difference = _compared(found, costs, clock.left()) if given["compare"] else None
    if given["as_json"]:
        options.say_object(_object(found, costs, destination, difference))
    elif not given["quiet"]:
        _tell(found, costs, destination, difference)


def _asked(given: Mapping[str, Any]) -> ProfileQuestion:
    from remat_cli.actions.profiling import ProfileQuestion

    return ProfileQuestion(
        device=given["device"],
        session=given["session"],
        estimate=given["estimate"],
        threads=given["threads"],
        batches=given["batches"],
        batch_dim=given["batch_dim"],
        strict=given["strict"],
        cached=not given["no_cache"],
        whole=not given["no_whole"],
        seconds=given["time_limit"],
        dims=dict(given["dims"]),
    )


def _profiled(model: Path, asked: ProfileQuestion, clock: Clock, quiet: bool) -> Profiled:
    """The costs; meanwhile the op being timed and the time left, on one line of the terminal."""
    from remat_cli.actions.profiling import profile
    from remat_cli.saying.progress import Line, bar

    def words(step: SurveyProgress) -> str:
        if not step.total:
            return step.what
        how = "once more" if step.done == step.total else f"{step.done} of {step.total}"
        return bar(step.at, step.left, f"{how}: {step.what}")

    with Line(quiet) as line:
        return profile(model, asked, lambda step: line.say(words(step)), clock)


def _compared(found: Profiled, costs: Costs, seconds: float) -> TimeDifference:
    from remat_cli.actions.whole_graph import compare

    return compare(found.graph, found.ops, costs, found.device, seconds)


def _tell_ahead(model: Path, asked: ProfileQuestion, as_json: bool) -> None:
    from remat_cli.actions.profiling import ahead

    plan = ahead(model, asked)
    if as_json:
        options.say_object(asdict(plan))
        return
    words = f"{plan.ops} ops of {plan.signatures} kinds, of which {plan.cached} were measured before."
    click.echo(f"{words} Measuring the others takes about {show_time(plan.seconds * 1e9)}.")


def _object(found: Profiled, costs: Costs, destination: Path, difference: TimeDifference | None) -> dict[str, Any]:
    from remat_cli.notes.words import sentences

    facts = {
        "costs": str(destination),
        "ops": len(costs.ops),
        "signatures": len(found.ops.distinct()),
        "measured_now": found.measured,
        "refused": dict(found.refused),
        "notes": list(sentences(found.notes)),
        "sum": costs.total,
        "unit": costs.unit,
        **costs.whole.as_mapping(),
    }
    return facts | ({"compare": difference.as_object()} if difference else {})


def _tell(found: Profiled, costs: Costs, destination: Path, difference: TimeDifference | None) -> None:
    from remat_cli.actions.profiling import named_refused
    from remat_cli.notes.words import sentences

    total = f"{costs.total} FLOPs" if costs.unit == "flops" else show_time(costs.total)
    click.echo(f"{destination}: {len(costs.ops)} ops, {total}; {_where_from(found)}")
    if costs.whole.whole_graph is not None:
        click.echo(_against_whole(costs))
    for note in sentences(found.notes):
        click.echo(f"remat: {note}", err=True)
    if found.outliers:
        click.echo(f"remat: These ops take another time in the graph than alone: {', '.join(found.outliers)}", err=True)
    if found.refused:
        click.echo(f"estimated, since {named_refused(found.refused, found.ops)}", err=True)
    if difference:
        click.echo(difference.as_text())


def _where_from(found: Profiled) -> str:
    if found.costs.device["kind"] == "paper":
        return "estimated, nothing was run"
    return f"{found.measured} of {len(found.ops.distinct())} kinds of op measured now"


def _against_whole(costs: Costs) -> str:
    """Both sums beside the time of the whole graph."""
    whole, alone, total = costs.whole.whole_graph, costs.whole.alone or 0, costs.total
    if not isinstance(whole, int):
        return f"The ops, timed one by one, add up to {show_time(alone)}. The whole graph was {whole}."
    median = costs.whole.median
    usual = f" (median {show_time(median)})" if isinstance(median, int) else ""
    return (
        f"The whole graph takes {show_time(whole)} undisturbed{usual}. Its ops, timed one by one, add up to"
        f" {show_time(alone)} ({alone / max(1, whole) - 1:+.1%}). They are scaled to {show_time(total)}."
    )
