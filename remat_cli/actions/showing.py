"""What `remat show` does: replays a plan and spells out what it needs, costs and computes again.

Invariant: the figures shown are replayed by `simulate`, not copied from the file.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from remat_cli.formats.files import check_apart
from remat_cli.formats.planfile import PlanFile, replay
from remat_cli.planning.loading import load_planned
from remat_cli.planning.subject import Subject
from remat_cli.saying.report import before_and_after, table
from remat_cli.saying.units import show_bytes, show_time
from solvers.mincut.traffic import Traffic, traffic_of
from solvers.plan import Plan
from solvers.simulate import Outcome


def run(path: Path, statements: bool, plot: Path | None, as_json: bool, fusion: str = "ideal") -> None:
    recorded, subject = load_planned(path)
    if fusion == "runtime":
        from remat_cli.planning.fusing import as_fused

        subject = as_fused(subject)
    plan, after = replay(recorded, subject.problem, subject.nodes, subject.values)
    before = subject.before()
    if plot:
        check_apart(plot, path, subject.path)
        from remat_cli.saying.plotting import draw_memory

        draw_memory(plot, before, after, recorded.budget)
    if as_json:
        click.echo(json.dumps(_object(recorded, subject, plan, before, after, statements, fusion)))
    elif statements:
        click.echo("\n".join(_spell(entry) for entry in recorded.program))
    else:
        click.echo(_summary(recorded, subject, plan, before, after, fusion))
    if plot and not as_json:
        click.echo(f"wrote {plot}")


def again(subject: Subject, plan: Plan) -> list[tuple[str, int, int]]:
    """The ops that run more than once: name, extra runs, extra time; the most expensive first."""
    nodes = subject.problem.nodes
    extra = [(i, times - 1) for i, times in Counter(plan.order()).items() if times > 1 and not nodes[i].views]
    rows = [(subject.nodes[index], times, times * nodes[index].cost) for index, times in extra]
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def _object(
    recorded: PlanFile, subject: Subject, plan: Plan, before: Outcome, after: Outcome, statements: bool, fusion: str
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "model": str(recorded.model.path),
        "method": recorded.method,
        "status": recorded.status,
        "budget": recorded.budget,
        "bound": recorded.bound,
        "peak": after.peak,
        "cost": after.cost,
        "baseline_peak": before.peak,
        "baseline_cost": before.cost,
        "resident": subject.problem.resident,
        "peak_at": subject.nodes[plan.order()[after.peak_step]],
        "recomputed": [{"node": name, "times": times, "cost": cost} for name, times, cost in again(subject, plan)],
        "notes": list(recorded.notes),
        "session": recorded.session,
        "allocator": recorded.allocator,
        "live": recorded.promises.live,
        "block": recorded.promises.block,
        "arena": recorded.promises.arena,
        "default_arena": recorded.promises.default_arena,
    }
    if subject.graph is not None:
        found["traffic"] = {
            name: {"before": asdict(old), "after": asdict(new)} for name, old, new in _traffic(subject, plan, fusion)
        }
    if statements:
        found["program"] = list(recorded.program)
    return found


def _summary(recorded: PlanFile, subject: Subject, plan: Plan, before: Outcome, after: Outcome, fusion: str) -> str:
    repeated = again(subject, plan)
    times = sum(times for _, times, _ in repeated)
    made = f"{recorded.method}, {recorded.status}, {recorded.session} session"
    words = [f"{recorded.model.path.name}: {made}, budget {show_bytes(recorded.budget)}"]
    words.append(before_and_after(before, after, subject.problem.resident, times, recorded.promises))
    words.append(f"the peak is reached at {subject.nodes[plan.order()[after.peak_step]]}")
    if repeated:
        lines = [["computed again", "times", "time"]]
        lines += [[name, str(times), show_time(cost)] for name, times, cost in repeated[:10]]
        words += ["", table(lines)]
    if len(repeated) > 10:
        words.append(f"and {len(repeated) - 10} more")
    if subject.graph is not None:
        rows = [["bytes read and written", "before", "after", "change"]]
        for name, old, new in _traffic(subject, plan, fusion):
            change = f"{new.total / max(old.total, 1) - 1:+.2%}"
            rows.append([f"  {name}", show_bytes(old.total), show_bytes(new.total), change])
        words += ["", table(rows)]
    return "\n".join(words)


def _traffic(subject: Subject, plan: Plan, fusion: str) -> list[tuple[str, Traffic, Traffic]]:
    """Bytes moved, before and after: with a kernel for each op, and with ops fused."""
    every, order = range(len(subject.problem.nodes)), plan.order()
    return [
        (name, traffic_of(subject.problem, every, kernels), traffic_of(subject.problem, order, kernels))
        for name, kernels in (("unfused", "none"), ("fused", fusion))
    ]


def _spell(entry: dict[str, Any]) -> str:
    match entry["op"]:
        case "allocate":
            place = f"in the place of %{entry['shares']}" if "shares" in entry else f"{entry['bytes']} bytes"
            return f"%{entry['register']} = allocate {entry['value']}  # {place}"
        case "compute":
            registers = ", ".join("_" if register is None else f"%{register}" for register in entry["register"])
            return f"compute {entry['node']} -> {registers}"
        case _:
            return f"deallocate %{entry['register']}"
