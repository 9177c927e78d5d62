"""`remat check`: whether a certificate proves what it claims of a plan, in exact integers and without any solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options
from remat_cli.errors import Usage
from remat_cli.model.sessions import STRICT
from remat_cli.units import show_bytes, show_time

if TYPE_CHECKING:
    from remat_cli.actions.certifying import Proved


@click.command(cls=options.GroupedCommand)
@click.argument("certificate", type=options.FILE)
@click.argument("plan", type=options.FILE)
@click.option("--costs", type=options.FILE, help="With a model instead of a plan: what its ops cost.")
@options.dims
@options.as_json
@options.quiet
def command(certificate: Path, plan: Path, **given: Any) -> None:
    """Check the proof in CERTIFICATE against PLAN and its model.

    `remat solve --certificate` writes certificates. Every row of the proof is derived again from the model's problem,
    and every sum is done in whole numbers. PLAN may also be the model or problem itself, where the certificate says
    that there is no plan. The exit code is 6 if something claimed does not follow.

    \b
    remat check train.cert.json train.plan.json
    """
    from remat_cli.actions.certifying import check_certificate, check_plan
    from remat_cli.formats import certificatefile
    from remat_cli.planning.loading import is_model, load_subject
    from remat_cli.plans.planned import load_planned

    proof, costs, dims = certificatefile.read(certificate), given["costs"], dict(given["dims"])
    if is_model(plan):
        proved = check_certificate(proof, load_subject(plan, costs, dims), STRICT)
    elif costs or dims:
        raise Usage(f"{plan} is a plan, which says what its costs and dimensions are; leave out --costs and --dim")
    else:
        proved = check_plan(proof, load_planned(plan))
    if given["as_json"]:
        options.say_object({**asdict(proved), "gap": proved.gap, "gap_any_order": proved.gap_any_order})
    elif not given["quiet"]:
        click.echo("\n".join(_lines(proved)))


def _lines(proved: Proved) -> Iterator[str]:
    within = "" if proved.budget is None else f"within {show_bytes(proved.budget)} ({proved.budget} bytes)"
    own, every = "with the recorded order of first computes", "whatever its order of first computes"
    if proved.infeasible is not None:
        yield f"proved: there is no schedule {within}, {own if proved.infeasible == 'order' else every}"
    for bound, gap, words in (
        (proved.bound_any_order, proved.gap_any_order, every),
        (proved.bound, proved.gap, own),
    ):
        if bound is None or (words == own and bound == proved.bound_any_order):
            continue
        yield f"proved: no schedule {within} costs less than {show_time(bound)} ({bound} ns), {words}"
        if gap is not None:
            yield f"the plan costs {show_time(proved.cost or 0)} ({proved.cost} ns), at most {gap:.3%} more than that"
    if proved.least_peak is not None:
        least = f"{show_bytes(proved.least_peak)} ({proved.least_peak} bytes)"
        yield f"proved: every schedule has a peak of at least {least}"
