"""What `remat verify` does: find or emit the rewritten model, feed both, say whether the plan's promises hold.

Invariant: exit code 0 means same bytes out, and a peak within the budget in the strict session.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import onnx

from remat_cli.actions import emitting
from remat_cli.errors import BadInput, Mismatch, Usage
from remat_cli.formats.files import check_apart, sha256, write_whole
from remat_cli.formats.planfile import PlanFile
from remat_cli.model.promise import Promise
from remat_cli.planning.loading import load_planned
from remat_cli.saying.report import table
from remat_cli.saying.units import show_bytes
from remat_cli.verify import Mode, Report, verify
from remat_cli.verify.feeds import given, seeded
from remat_cli.verify.processes import Bench


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, parsed."""

    model: Path | None
    feeds: Path | None
    seed: int
    cap: bool
    provider: str
    timeout: float
    output: Path | None
    as_json: bool
    quiet: bool


def run(path: Path, settings: Settings) -> None:
    plan, subject = load_planned(path)
    if subject.graph is None:
        raise BadInput(f"{path} schedules the bare problem {subject.path.name}: there is no ONNX model to run")
    rewritten = settings.model or subject.beside(".remat.onnx")
    if not rewritten.is_file():
        rewritten = emitting.emit(path, settings.model).path
    check_apart(settings.output, path, subject.path, rewritten)
    promise = _promise(rewritten, path)
    _check_provider(settings.provider)
    feeds = given(subject.graph, settings.feeds) if settings.feeds else seeded(subject.graph, settings.seed)
    with Bench(feeds, settings.provider, settings.timeout, subject.threads) as bench:
        report = verify(subject.graph, rewritten, feeds, _cap(plan) if settings.cap else None, bench)
    faults = _faults(report, plan.budget)
    found = _object(report, plan, promise, rewritten, faults, subject.threads)
    if settings.output:
        write_whole(settings.output, json.dumps(found, indent=1) + "\n")
    if settings.as_json:
        click.echo(json.dumps(found))
    elif not settings.quiet:
        click.echo(_summary(report, plan, promise))
        if subject.threads != len(os.sched_getaffinity(0)):
            count = f"{subject.threads} thread{'s' if subject.threads > 1 else ''}"
            click.echo(f"run with {count}, as the costs are for; with more, convolutions work in 64 KiB more for each")
    if faults:
        raise Mismatch(f"{rewritten.name}: {'; '.join(faults)}")


def _promise(rewritten: Path, plan: Path) -> Promise:
    """The peaks that the rewritten model's metadata promises; a model of another plan is refused."""
    try:
        model = onnx.load(rewritten, load_external_data=False)
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise BadInput(f"cannot read {rewritten}: {error}") from error
    said = {entry.key: entry.value for entry in model.metadata_props}
    if said.get("remat.plan.sha256") != sha256(plan):
        raise BadInput(f"{rewritten} was not made from {plan} as it is now; run 'remat emit {plan}' again")
    return Promise(strict=_number(said.get("remat.peak.strict")), default=_number(said.get("remat.peak.default")))


def _cap(plan: PlanFile) -> int:
    """The hard cap to run under: the budget, or more where the plan itself says that its arena needs more."""
    return max(plan.budget, plan.promises.arena or 0)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _check_provider(name: str) -> None:
    """Without all it needs, onnxruntime would quietly run on the CPU instead."""
    from profiles.device import missing_for_cuda

    if name == "cuda" and (missing := missing_for_cuda()):
        raise Usage(f"--provider cuda cannot be used here; what is missing: {'; '.join(missing)}")


def _faults(report: Report, budget: int) -> list[str]:
    """What is not as the plan promised."""
    found = []
    for name, mode in (("strict session", report.strict), ("default options", report.default)):
        if mode.failed:
            found.append(f"{name}: {mode.failed}")
        found += [f"{name}: output {wrong.output} is not the same: {wrong.says}" for wrong in mode.differs]
    peak = report.strict.after.first
    if peak is not None and peak > budget:
        found.append(f"strict session: the peak is {peak} bytes, {peak - budget} over the budget of {budget}")
    if report.capped and report.capped.rewritten:
        found.append(f"under a hard cap of {report.capped.budget} bytes it fails: {report.capped.rewritten}")
    return found


def _object(
    report: Report, plan: PlanFile, promise: Promise, rewritten: Path, faults: list[str], threads: int
) -> dict[str, Any]:
    return {
        "ok": not faults,
        "model": str(rewritten),
        "budget": plan.budget,
        "threads": threads,
        "predicted": {"strict": promise.strict, "default": promise.default},
        **asdict(report),
        "faults": faults,
    }


def _summary(report: Report, plan: PlanFile, promise: Promise) -> str:
    rows = [["measured peak", "before", "after", "change", "predicted", "outputs"]]
    for name, mode, said in (
        ("strict session", report.strict, promise.strict),
        ("default options", report.default, promise.default),
    ):
        rows.append(_row(name, mode, mode.before.first, mode.after.first, said))
        if mode.after.second is not None:
            rows.append(_row("  second run", mode, mode.before.second, mode.after.second, None))
    words = [table(rows)]
    if report.capped:
        rewritten, original = map(_capped, (report.capped.rewritten, report.capped.original))
        more = plan.budget < report.capped.budget
        where = f"{show_bytes(report.capped.budget)}, {'more than' if more else 'at'} the budget"
        words.append(f"hard cap, {where}: the rewritten model {rewritten}; the original {original}")
    return "\n".join(words)


def _row(name: str, mode: Mode, before: int | None, after: int | None, said: int | None) -> list[str]:
    change = f"{after / before - 1:+.2%}" if before and after else ""
    same = "failed" if mode.failed else f"{len(mode.differs)} differ" if mode.differs else "same bytes"
    return [name, *("" if size is None else show_bytes(size) for size in (before, after)), change, _said(said), same]


def _capped(failed: str | None) -> str:
    return "runs" if failed is None else f"does not ({failed})"


def _said(promised: int | None) -> str:
    return "" if promised is None else show_bytes(promised)
