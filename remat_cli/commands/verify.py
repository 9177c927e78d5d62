"""`remat verify`: run both models in onnxruntime, compare their bytes, measure their peaks."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options

if TYPE_CHECKING:
    from remat_cli.actions.verifying import Verified
    from remat_cli.checking import Capped, Mode


@click.command()
@click.argument("plan", type=options.FILE)
@click.option("--model", type=options.FILE, help="The rewritten model; by default the one beside the plan's model.")
@click.option("--feeds", type=options.FILE, help="Inputs as an .npz file; by default random and valid.")
@options.seed
@click.option("--cap/--no-cap", default=True, show_default=True, help="Also run under a hard arena cap at the budget.")
@click.option("--provider", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--timeout", type=options.TIME, default="10m", show_default=True, help="For each run of a model.")
@click.option("-o", "--output", type=options.FILE, help="Also write what --json prints, as a report.")
@options.as_json
@options.quiet
def command(plan: Path, model: Path | None, output: Path | None, as_json: bool, quiet: bool, **trial: Any) -> None:
    """Run the model of PLAN and its rewriting in onnxruntime: same bytes out, peak within budget?

    Each model runs in a process of its own, in the strict session and under default options. Emits the rewritten model
    first if it is not there. Exit code 6 if a promise does not hold.
    """
    from remat_cli.actions import emitting, verifying
    from remat_cli.formats.files import check_apart, write_whole
    from remat_cli.planning.loading import load_planned

    planned = load_planned(plan)
    emitting.graph_of(planned)
    rewritten = model or emitting.place_of(planned)
    if not rewritten.is_file():
        emitting.write(emitting.emit(planned), emitting.place_of(planned, model))
    check_apart(output, plan, planned.subject.path, rewritten)
    found = verifying.tried(planned, rewritten, verifying.promise_of(rewritten, plan), verifying.Trial(**trial))
    said = _object(found, rewritten)
    if output:
        write_whole(output, json.dumps(said, indent=1) + "\n")
    if as_json:
        click.echo(json.dumps(said))
    elif not quiet:
        click.echo(_summary(found))
    found.or_raised(rewritten.name)


def _object(found: Verified, rewritten: Path) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "model": str(rewritten),
        "budget": found.budget,
        "threads": found.threads,
        "predicted": {"strict": found.promise.strict, "default": found.promise.default},
        **asdict(found.report),
        "faults": list(found.faults),
    }


def _summary(found: Verified) -> str:
    from remat_cli.saying.report import table

    rows = [["measured peak", "before", "after", "change", "predicted", "outputs"]]
    for name, mode, said in (
        ("strict session", found.report.strict, found.promise.strict),
        ("default options", found.report.default, found.promise.default),
    ):
        rows.append(_row(name, mode, mode.before.first, mode.after.first, said))
        if mode.after.second is not None:
            rows.append(_row("  second run", mode, mode.before.second, mode.after.second, None))
    words = [table(rows)]
    if found.report.capped:
        words.append(_under_cap(found.report.capped, found.budget))
    if found.threads != len(os.sched_getaffinity(0)):
        count = f"{found.threads} thread{'s' if found.threads > 1 else ''}"
        words.append(f"run with {count}, as the costs are for; with more, convolutions work in 64 KiB more for each")
    return "\n".join(words)


def _under_cap(capped: Capped, budget: int) -> str:
    from remat_cli.saying.units import show_bytes

    rewritten, original = map(_ran, (capped.rewritten, capped.original))
    where = f"{show_bytes(capped.budget)}, {'more than' if budget < capped.budget else 'at'} the budget"
    return f"hard cap, {where}: the rewritten model {rewritten}; the original {original}"


def _ran(failed: str | None) -> str:
    return "runs" if failed is None else f"does not ({failed})"


def _row(name: str, mode: Mode, before: int | None, after: int | None, said: int | None) -> list[str]:
    from remat_cli.saying.units import show_bytes

    change = f"{after / before - 1:+.2%}" if before and after else ""
    same = "failed" if mode.failed else f"{len(mode.differs)} differ" if mode.differs else "same bytes"
    shown = ["" if size is None else show_bytes(size) for size in (before, after, said)]
    return [name, *shown[:2], change, shown[2], same]
