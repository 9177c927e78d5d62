"""A plan spelled out: what it needs, costs and computes again.

Invariant: the figures shown are replayed by `simulate`, not copied from the file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from remat_cli.formats.planfile import PlanFile
from remat_cli.planning.planned import Planned
from remat_cli.planning.subject import Subject
from remat_cli.saying.report import before_and_after, table
from remat_cli.saying.units import show_bytes, show_time
from solvers.methods.mincut.traffic import Traffic, traffic_of
from solvers.plan import Plan
from solvers.simulate import Outcome


@dataclass(frozen=True, slots=True)
class Shown:
    """A plan replayed. `fusion`: which ops are reckoned to share a kernel, where bytes moved are counted."""

    recorded: PlanFile
    subject: Subject
    plan: Plan
    before: Outcome
    after: Outcome
    fusion: str


def shown(planned: Planned, fusion: str = "ideal") -> Shown:
    plan, after = planned.replayed()
    return Shown(planned.recorded, planned.subject, plan, planned.subject.before(), after, fusion)


def again(subject: Subject, plan: Plan) -> list[tuple[str, int, int]]:
    """The ops that run more than once: name, extra runs, extra time; the most expensive first."""
    nodes = subject.problem.nodes
    extra = [(i, times - 1) for i, times in Counter(plan.order()).items() if times > 1 and not nodes[i].views]
    rows = [(subject.nodes[index], times, times * nodes[index].cost) for index, times in extra]
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def as_object(found: Shown, statements: bool) -> dict[str, Any]:
    recorded, subject, plan, before, after = found.recorded, found.subject, found.plan, found.before, found.after
    said: dict[str, Any] = {
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
        rows = _traffic(subject, plan, found.fusion)
        said["traffic"] = {name: {"before": asdict(old), "after": asdict(new)} for name, old, new in rows}
    if statements:
        said["program"] = list(recorded.program)
    return said


def program(found: Shown) -> str:
    """One statement a line."""
    return "\n".join(_spell(entry) for entry in found.recorded.program)


def summary(found: Shown) -> str:
    recorded, subject, plan, before, after = found.recorded, found.subject, found.plan, found.before, found.after
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
        for name, old, new in _traffic(subject, plan, found.fusion):
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
