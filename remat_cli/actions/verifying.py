"""What `remat verify` does: find or emit the rewritten model, feed both, say whether the plan's promises hold.

Invariant: exit code 0 means same bytes out, and no more live at once than the budget, in the session that the plan is
for. The other session is reported, and promises nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import onnx

from remat_cli.actions import emitting
from remat_cli.checking import Mode, Process, Report, verify
from remat_cli.checking.feeds import given, seeded
from remat_cli.checking.processes import Bench
from remat_cli.errors import BadInput, Mismatch, Usage
from remat_cli.formats.files import check_apart, sha256, write_whole
from remat_cli.formats.planfile import PlanFile, replay
from remat_cli.model.promise import Promise
from remat_cli.planning.loading import load_planned
from remat_cli.planning.subject import Subject
from remat_cli.planning.untouched import is_untouched
from remat_cli.saying.report import table
from remat_cli.saying.units import show_bytes

NEAR = 0.05  # of what was said that a process holds: closer than that is as it was said
SMALL = 10_000_000  # bytes, and so is that


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, parsed."""

    model: Path | None
    feeds: Path | None
    seed: int
    cap: bool | None  # None: where the plan is for a capped arena
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
    promise = _promise(rewritten, path, plan, subject)
    _check_provider(settings.provider)
    feeds = given(subject.graph, settings.feeds) if settings.feeds else seeded(subject.graph, settings.seed)
    with Bench(feeds, settings.provider, settings.timeout, subject.threads) as bench:
        report = verify(subject.graph, rewritten, path, plan.kind, _cap(plan, settings.cap), bench)
    faults = _faults(report, plan)
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


def _promise(rewritten: Path, path: Path, plan: PlanFile, subject: Subject) -> Promise:
    """What the plan promises of the model, whose metadata say that it was made from it; or which is the original."""
    if sha256(rewritten) == plan.model.sha256:
        statements, _ = replay(plan, subject.problem, subject.nodes, subject.values)
        if is_untouched(statements, subject):
            return plan.promises
    try:
        model = onnx.load(rewritten, load_external_data=False)
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise BadInput(f"cannot read {rewritten}: {error}") from error
    said = {entry.key: entry.value for entry in model.metadata_props}
    if said.get("remat.plan.sha256") != sha256(path):
        raise BadInput(f"{rewritten} was not made from {path} as it is now; run 'remat emit {path}' again")
    strict, default = (_number(said.get(f"remat.peak.{name}")) for name in ("strict", "default"))
    return replace(plan.promises, strict=strict, default=default)


def _cap(plan: PlanFile, asked: bool | None) -> int | None:
    """The hard cap to run under, if that is promised or asked for."""
    return plan.budget if (plan.kind.capped if asked is None else asked) else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _check_provider(name: str) -> None:
    """Without all it needs, onnxruntime would quietly run on the CPU instead."""
    from profiles.device import missing_for_cuda

    if name == "cuda" and (missing := missing_for_cuda()):
        raise Usage(f"--provider cuda cannot be used here; what is missing: {'; '.join(missing)}")


def _faults(report: Report, plan: PlanFile) -> list[str]:
    """What is not as the plan promised, in the session that it was made for."""
    where, mode = f"{plan.session} session", report.mode(plan.session)
    found = [f"{where}: {mode.failed}"] if mode.failed else []
    found += [f"{where}: output {wrong.output} is not the same: {wrong.says}" for wrong in mode.differs]
    peak = mode.after.first
    if peak is not None and peak > plan.budget:
        over = f"{peak - plan.budget} over the budget of {plan.budget}"
        found.append(f"{where}: {peak} bytes are live at once, {over}")
    if report.process and report.process.failed:
        found.append(f"{where}, with its allocator: {report.process.failed}")
    for wrong in report.process.differs if report.process else ():
        found.append(f"{where}, with its allocator: output {wrong.output} is not the same: {wrong.says}")
    if plan.kind.capped and report.capped and report.capped.rewritten:
        found.append(f"under a hard cap of {report.capped.budget} bytes it fails: {report.capped.rewritten}")
    return found


def _object(
    report: Report, plan: PlanFile, promise: Promise, rewritten: Path, faults: list[str], threads: int
) -> dict[str, Any]:
    return {
        "ok": not faults,
        "model": str(rewritten),
        "session": plan.session,
        "allocator": plan.allocator,
        "budget": plan.budget,
        "threads": threads,
        "predicted": {"strict": promise.strict, "default": promise.default, "process": promise.arena},
        **asdict(report),
        "faults": faults,
    }


def _summary(report: Report, plan: PlanFile, promise: Promise) -> str:
    """The promised session as a table; what else was measured in a line each."""
    mode = report.mode(plan.session)
    rows = [["measured", "before", "after", "change", "predicted", "outputs"]]
    rows.append(_row(f"live, {plan.session} session", mode, mode.before.first, mode.after.first, promise.live))
    if mode.after.second is not None:
        rows.append(_row("  second run", mode, mode.before.second, mode.after.second, None))
    weight = report.process
    if weight is not None:
        rows.append(_row("the process", weight, weight.before, weight.after, promise.arena))
    words = [table(rows), *_heavier(weight, promise.arena)]
    if report.capped:
        rewritten, original = map(_capped, (report.capped.rewritten, report.capped.original))
        where = show_bytes(report.capped.budget)
        words.append(f"hard cap at {where}: the rewritten model {rewritten}; the original {original}")
    return "\n".join([*words, *_others(report, plan.session)])


def _heavier(weight: Process | None, said: int | None) -> Iterator[str]:
    """Where the process is not as heavy as it was said to be."""
    if weight is None or weight.after is None or said is None:
        return
    off = weight.after - said
    if abs(off) > max(NEAR * said, SMALL):
        more = "more" if off > 0 else "less"
        yield f"the process holds {show_bytes(abs(off))} {more} than was said ({off / said:+.1%})"
    if weight.stray:
        yield f"{weight.stray} allocations were not as planned, and were taken from elsewhere"


def _others(report: Report, promised: str) -> Iterator[str]:
    """The sessions that the plan is not for, in a line each."""
    for name in ("strict", "default"):
        if name == promised:
            continue
        mode = report.mode(name)
        same = _same(mode)
        sizes = [show_bytes(peak) for peak in (mode.before.first, mode.after.first) if peak is not None]
        yield f"{name} session, not promised: {same}" + (f", {' before, '.join(sizes)} after" if sizes[1:] else "")


def _same(mode: Mode | Process) -> str:
    return "failed" if mode.failed else f"{len(mode.differs)} differ" if mode.differs else "same bytes"


def _row(name: str, mode: Mode | Process, before: int | None, after: int | None, said: int | None) -> list[str]:
    change = f"{after / before - 1:+.2%}" if before and after else ""
    sizes = ("" if size is None else show_bytes(size) for size in (before, after))
    return [name, *sizes, change, "" if said is None else show_bytes(said), _same(mode)]


def _capped(failed: str | None) -> str:
    return "runs" if failed is None else f"does not ({failed})"
