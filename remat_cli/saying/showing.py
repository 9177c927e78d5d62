"""A plan in full, or a model without a plan: its memory, cost and recomputations.

Invariant: the figures shown are replayed by `simulate`, not copied from the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from remat_cli.errors import BadInput, Usage
from remat_cli.formats.planfile import PlanFile, is_plan
from remat_cli.formats.program import name_program
from remat_cli.model.proved import overhead_of
from remat_cli.model.session_bytes import session_bytes
from remat_cli.notes.words import sentences
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.fusing import as_fused
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.breakdown import Anatomy, Breakdown, anatomy, at_peak
from remat_cli.plans.planned import load_planned
from remat_cli.plans.timeline import Timeline, timeline
from remat_cli.saying.report import before_and_after, breakdown_table, held_rows
from remat_cli.saying.tables import table
from remat_cli.units import show_bytes, show_change, show_time
from solvers.methods.mincut.traffic import Traffic, traffics_of
from solvers.plan import Plan
from solvers.simulate import Outcome


@dataclass(frozen=True, slots=True)
class Shown:
    """A file and what was found in it. `fusion`: the assumption about which ops share a kernel, where bytes moved are
    counted.

    `recorded`: the plan file; None for a model or problem without a plan, whose `after` is its `before`.
    """

    path: Path
    subject: Subject
    plan: Plan
    before: Outcome
    after: Outcome
    lines: tuple[Timeline, Timeline]  # before and after
    parts: Anatomy
    recorded: PlanFile | None = None
    fusion: str = "ideal"

    @property
    def name(self) -> str:
        return self.subject.stem

    @property
    def overhead(self) -> float:
        """The overhead of recomputation and of the ops that rewriting adds."""
        return overhead_of(self.time, self.before.cost)

    @property
    def time(self) -> int:
        """The predicted time of a step."""
        return self.recorded.time if self.recorded else self.after.cost

    def breakdowns(self) -> tuple[Breakdown, Breakdown]:
        """The memory by role at both peaks."""
        before, after = self.lines
        whole, parts = self.subject.whole or self.subject, self.parts
        old = at_peak(whole, before, parts if whole is self.subject else anatomy(whole))
        return old, at_peak(self.subject, after, parts)


def shown(path: Path, costs: Path | None = None, dims: Mapping[str, int] | None = None, fusion: str = "ideal") -> Shown:
    """The content of the file: a plan, a model or a problem. `costs`, `dims`: for a model, as `solve` takes them."""
    recorded = None
    if is_plan(path):
        if costs or dims:
            raise Usage(f"{path} is a plan, which says its costs and dimensions; leave out --costs and --dim")
        planned = load_planned(path)
        recorded, subject = planned.recorded, planned.subject
        plan, after = planned.replayed()
    else:
        subject = load_subject(path, costs, dims or {})
    if not subject.nodes:
        raise BadInput(f"{path} has no ops: there is nothing to show")
    given, before = subject.as_it_is()
    if recorded is None:
        plan, after = given, before
    if fusion == "runtime":
        subject = as_fused(subject)
    parts = anatomy(subject)
    whole = subject.whole or subject
    begun = parts if whole is subject else anatomy(whole)
    old = timeline(whole.problem, given, begun.late(whole.problem))
    new = timeline(subject.problem, plan, parts.late(subject.problem)) if recorded else old
    return Shown(path, subject, plan, before, after, (old, new), parts, recorded, fusion)


def again(subject: Subject, plan: Plan) -> list[tuple[str, int, int]]:
    """The ops that run more than once: name, extra runs, extra time; the most expensive first."""
    nodes = subject.problem.nodes
    extra = [(i, times - 1) for i, times in Counter(plan.order()).items() if times > 1 and not nodes[i].views]
    rows = [(subject.nodes[index], times, times * nodes[index].cost) for index, times in extra]
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def as_object(found: Shown, statements: bool) -> dict[str, Any]:
    recorded, subject, plan, before, after = found.recorded, found.subject, found.plan, found.before, found.after
    promises = recorded.promises if recorded else None
    said: dict[str, Any] = {
        "model": str(subject.path),
        **{name: getattr(recorded, name, None) for name in ("method", "status", "budget", "bound")},
        "peak": after.peak,
        "cost": after.cost,
        "baseline_peak": before.peak,
        "baseline_cost": before.cost,
        "overhead": found.overhead,
        "emitted_cost": promises.time if promises else None,
        "resident": subject.problem.resident,
        "peak_at": subject.nodes[plan.order()[after.peak_step]],
        "recomputed": [{"node": name, "times": times, "cost": cost} for name, times, cost in again(subject, plan)],
        "notes": list(recorded.notes if recorded else sentences(subject.notes)),
        "session": getattr(recorded, "session", None),
        **{name: getattr(promises, name, None) for name in ("live", "block", "arena", "default_arena")},
        "session_itself": promises.itself if promises else itself(found),
        "breakdown": dict(zip(("before", "after"), (part.as_object() for part in found.breakdowns()), strict=True)),
    }
    if subject.graph is not None:
        rows = _traffic(subject, plan, found.fusion)
        said["traffic"] = {name: {"before": asdict(old), "after": asdict(new)} for name, old, new in rows}
    if statements:
        said["program"] = list(_program(found))
    return said


def itself(found: Shown) -> int | None:
    """What a session of the model holds before any run, beside what it runs on; None where there is no model."""
    graph = found.subject.graph
    return None if graph is None else session_bytes(graph)


def program(found: Shown) -> str:
    """The program with one statement a line."""
    return "\n".join(map(spell, _program(found)))


def _program(found: Shown) -> tuple[dict[str, Any], ...]:
    return (
        found.recorded.program
        if found.recorded
        else name_program(found.plan, found.subject.nodes, found.subject.values)
    )


def summary(found: Shown) -> str:
    """The summary of a plan: before and after, what fills the memory, what is recomputed."""
    recorded, subject, plan, before, after = found.recorded, found.subject, found.plan, found.before, found.after
    repeated = again(subject, plan)
    times = sum(times for _, times, _ in repeated)
    words = [heading(found)]
    if recorded:
        held = held_rows(recorded.promises, recorded.kind)
        words.append(before_and_after(before, after, subject, times, held, recorded.promises.time))
    words.append(f"the peak is reached at {subject.nodes[plan.order()[after.peak_step]]}")
    words += ["", breakdown_table(*found.breakdowns() if recorded else found.breakdowns()[:1])]
    if repeated:
        lines = [["computed again", "times", "time"]]
        lines += [[name, str(times), show_time(cost)] for name, times, cost in repeated[:10]]
        words += ["", table(lines)]
    if len(repeated) > 10:
        words.append(f"and {len(repeated) - 10} more")
    if subject.graph is not None:
        rows = [["bytes read and written", "before", "after", "change"]]
        for name, old, new in _traffic(subject, plan, found.fusion):
            change = show_change(old.total, new.total)
            rows.append([f"  {name}", show_bytes(old.total), show_bytes(new.total), change])
        words += ["", table(rows if recorded else [row[:2] for row in rows])]
    return "\n".join(words)


def heading(found: Shown) -> str:
    """The kind of file, its method and its budget, in a line."""
    recorded, name = found.recorded, found.subject.path.name
    if recorded:
        made = f"{recorded.method}, {recorded.status}, {recorded.session} session"
        return f"{name}: {made}, budget {show_bytes(recorded.budget)}"
    needs = f"{show_bytes(found.before.peak)} live at once, {show_time(found.before.cost)}"
    held = itself(found)
    beside = "" if held is None else f"; the session itself holds about {show_bytes(held)} beside"
    return f"{name} as it stands: {len(found.subject.nodes)} ops, {needs}{beside}"


def _traffic(subject: Subject, plan: Plan, fusion: str) -> list[tuple[str, Traffic, Traffic]]:
    """Bytes moved, before and after: with a kernel for each op, and with ops fused."""
    whole, fusions = (subject.whole or subject).problem, ("none", fusion)
    before = traffics_of(whole, range(len(whole.nodes)), fusions)
    after = traffics_of(subject.problem, plan.order(), fusions)
    return list(zip(("unfused", "fused"), before, after, strict=True))


def spell(entry: dict[str, Any]) -> str:
    match entry["op"]:
        case "allocate":
            place = f"in the place of %{entry['shares']}" if "shares" in entry else f"{entry['bytes']} bytes"
            return f"%{entry['register']} = allocate {entry['value']}  # {place}"
        case "compute":
            registers = ", ".join("_" if register is None else f"%{register}" for register in entry["register"])
            return f"compute {entry['node']} -> {registers}"
        case _:
            return f"deallocate %{entry['register']}"
