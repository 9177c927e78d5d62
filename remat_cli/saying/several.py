"""Several models and plans side by side: their memory and cost, and what fills their memory.

Invariant: a model without a plan is listed once, however many of its plans are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remat_cli.plans.breakdown import Breakdown
from remat_cli.plans.roles import Role
from remat_cli.saying.showing import Shown
from remat_cli.saying.tables import comma_separated, table
from remat_cli.units import show_bytes, show_change, show_time


@dataclass(frozen=True, slots=True)
class Bar:
    """`made_by`: the method of a plan; None for a model without a plan. `file`: the plan's file or the model's."""

    name: str
    file: str
    made_by: str | None
    budget: int | None
    filled: Breakdown

    @property
    def sizes(self) -> Mapping[Role, int]:
        return self.filled.sizes

    def as_object(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "file": self.file,
            "method": self.made_by,
            "budget": self.budget,
            **self.filled.as_object(),
        }


def bars(every: Sequence[Shown]) -> list[Bar]:
    """The bars, with plans after the model that they are plans of, in whatever order they were named."""
    found: dict[tuple[str, tuple[tuple[str, int], ...]], list[Bar]] = {}
    for shown in every:
        before, after = shown.breakdowns()
        model = (shown.subject.source.sha256, tuple(shown.subject.dims.items()))
        own = found.setdefault(model, [Bar(shown.name, shown.subject.path.name, None, None, before)])
        if shown.recorded:
            plan = shown.recorded
            own.append(Bar(shown.name, shown.path.name, plan.method, plan.budget, after))
    return [bar for own in found.values() for bar in own]


def roles_used(every: Sequence[Bar]) -> list[Role]:
    """The roles that take any memory, in their fixed order."""
    return [role for role in Role if any(bar.sizes.get(role) for bar in every)]


def comparison(every: Sequence[Shown]) -> str:
    """A line for each file."""
    rows = [["", "plan", "status", "budget", "peak", "change", "time", "overhead", "run again"]]
    for found in every:
        plan, again = found.recorded, sum(found.lines[1].again)
        made = [plan.method, plan.status, show_bytes(plan.budget)] if plan else ["none", "", ""]
        change = show_change(found.before.peak, found.after.peak) if plan else ""
        over = [f"{found.overhead:+.2%}", str(again)] if plan else ["", ""]
        rows.append([found.path.name, *made, show_bytes(found.after.peak), change, show_time(found.time), *over])
    return table(rows, left=(0, 1, 2))


def breakdowns(every: Sequence[Bar], as_csv: bool) -> str:
    """A line for each bar."""
    roles = roles_used(every)
    if as_csv:
        known = [role for role in Role if any(role in bar.sizes for bar in every)]
        columns = ("name", "method", "budget", *(role.key for role in known), "total", "at", "file")
        figures = (
            (one.name, one.made_by, one.budget, *map(one.sizes.get, known), one.filled.total, one.filled.node, one.file)
            for one in every
        )
        return comma_separated([columns, *figures])
    lines = [["at the peak", "plan", "budget", *(role.value for role in roles), "in all"]]
    for bar in every:
        sizes = [show_bytes(bar.sizes[role]) if role in bar.sizes else "-" for role in roles]
        budget = "" if bar.budget is None else show_bytes(bar.budget)
        lines.append([bar.file, bar.made_by or "none", budget, *sizes, show_bytes(bar.filled.total)])
    return table(lines, left=(0, 1))
