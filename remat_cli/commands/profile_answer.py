"""What `profile` does once its flags are read, and says.

Invariant: the file is written whole, and only once every op has a cost; pinned entries of an earlier file stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from profiles import costfile
from profiles.costs import Costs
from profiles.survey import SurveyProgress
from remat_cli.actions import profiling
from remat_cli.actions.profiling import Profiled, ProfileQuestion, ahead, named_refused, profile
from remat_cli.actions.whole_graph import TimeDifference, compare
from remat_cli.commands import options
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.notes.words import sentences
from remat_cli.saying.progress import Line, bar
from remat_cli.units import show_time
from solvers.clock import Clock

PROFILING_SHARE = 0.7  # of the time left, where the whole graph is to be run again and compared


def measure(model: Path, given: Mapping[str, Any]) -> None:
    """Find what each op costs, and write the file."""
    clock = options.clock_of(given)
    asked = _asked(given)
    model = options.optimized(model, given["optimize"])
    if given["dry_run"]:
        _tell_ahead(model, asked, given["as_json"])
        return
    destination = given["output"] or costfile.beside(model)
    check_place(destination, FileKind.COSTS, model)
    found = _profiled(model, asked, clock.share(PROFILING_SHARE) if given["compare"] else clock, given["quiet"])
    costs = profiling.write(found, model, destination)
    difference = compare(found.graph, found.ops, costs, found.device, clock.left()) if given["compare"] else None
    if given["as_json"]:
        options.say_object(_object(found, costs, destination, difference))
    elif not given["quiet"]:
        _tell(found, costs, destination, difference)


def _asked(given: Mapping[str, Any]) -> ProfileQuestion:
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

    def words(step: SurveyProgress) -> str:
        if not step.total:
            return step.what
        how = "once more" if step.done == step.total else f"{step.done} of {step.total}"
        return bar(step.at, step.left, f"{how}: {step.what}")

    steps = profiling.Steps()
    with Line(quiet) as line, steps.read_by(lambda step: line.say(words(step))):
        return profile(model, asked, steps, clock)


def _tell_ahead(model: Path, asked: ProfileQuestion, as_json: bool) -> None:
    plan = ahead(model, asked)
    if as_json:
        options.say_object(asdict(plan))
        return
    words = f"{plan.ops} ops of {plan.signatures} kinds, of which {plan.cached} were measured before."
    click.echo(f"{words} Measuring the others takes about {show_time(plan.seconds * 1e9)}.")


def _object(found: Profiled, costs: Costs, destination: Path, difference: TimeDifference | None) -> dict[str, Any]:
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
