"""A curve as the user reads it: a table, comma-separated values, Markdown, JSON.

Invariant: this module only spells the figures of the points, it computes none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from remat_cli.model.proved import overhead_of
from remat_cli.model.quantities import Budget
from remat_cli.notes.words import sentences
from remat_cli.plans.points import Curve, Point, Ran
from remat_cli.saying.tables import comma_separated, table
from remat_cli.units import show_bytes

Plans = Mapping[tuple[str, int], str]  # the path of the plan file of a method at a budget, where one was written


def as_object(curve: Curve, plans: Plans) -> dict[str, Any]:
    """The object that `remat sweep --json` prints; the keys are a contract."""
    knee = curve.knee
    return {
        "model": str(curve.subject.path),
        "baseline_peak": curve.before.peak,
        "baseline_cost": curve.before.cost,
        "resident": curve.subject.problem.resident,
        "whole": curve.whole,
        "points": [_point(point, plans.get((point.method, point.budget))) for point in curve.points],
        "knee": None if knee is None else {"budget": knee.budget, "method": knee.method, "overhead": knee.overhead},
        "least_peak": curve.least_peak,
        "measured": _measurements(curve.ran),
        "notes": list(sentences(curve.subject.notes)),
    }


def _point(point: Point, plan: str | None) -> dict[str, Any]:
    return {
        "budget": point.budget,
        "method": point.method,
        "status": point.status.value,
        "peak": point.peak,
        "cost": point.cost,
        "overhead": point.overhead,
        "emitted_cost": point.plan.promises.time if point.plan else None,
        "bound": point.bound,
        "bound_any_order": point.bound_any_order,
        "gap": point.gap,
        "seconds": round(point.seconds, 3),
        "plan": plan,
        "arena": point.plan.promises.arena if point.plan else None,
        "least_peak": point.least_peak,
        "made_by": point.made_by or None,
        "cached": point.cached,
        "measured": _measurements(point.ran),
        "notes": list(sentences(point.notes)),
    }


def _measurements(ran: Ran | None) -> dict[str, Any] | None:
    if ran is None:
        return None
    return {"steps_per_second": ran.per_second, "ns": ran.ns, "held": ran.held}


COLUMNS = ("method", "budget", "of the model's", "peak", "overhead", "bound", "gap", "status", "seconds")


def as_table(curve: Curve) -> str:
    """The rows, and under them the notes about the whole curve."""
    return "\n".join([table(_rows(curve), left=(0, 7)), *_bounds_said(curve)])


def as_markdown(curve: Curve) -> str:
    head, *rows = _rows(curve)
    rows = [head, ["---" if place in (0, 7) else "---:" for place in range(len(head))], *rows]
    return "\n".join(["\n".join(f"| {' | '.join(row)} |" for row in rows), "", *_bounds_said(curve)])


def as_csv(curve: Curve) -> str:
    """Bytes, nanoseconds and shares, unrounded."""
    rows = [
        _point(point, None) | {f"measured_{name}": value for name, value in (_measurements(point.ran) or {}).items()}
        for point in curve.points
    ]
    every = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in ("method", *every) if name not in ("plan", "notes", "made_by", "cached", "measured")]
    columns = list(dict.fromkeys(names))
    return comma_separated([columns, *([row.get(name) for name in columns] for row in rows)])


def _rows(curve: Curve) -> list[Sequence[str]]:
    """What heads the columns, and a row for each point."""
    head = COLUMNS if curve.ran is None else (*COLUMNS, "steps/s", "held")
    return [head, *(_row(curve, point) for point in curve.points)]


def _row(curve: Curve, point: Point) -> Sequence[str]:
    """One row of the table. Where the method needs more than the budget, a budget that is enough is in brackets. The
    bound is of every plan, whatever its order."""
    needs = "-" if point.least_peak is None else f"({_enough(point.least_peak)})"
    bound, gap = point.bound_any_order, point.proved and point.proved.gap_any_order
    row = (
        point.method,
        show_bytes(point.budget),
        f"{point.budget / curve.whole:.1%}",
        needs if point.peak is None else show_bytes(point.peak),
        "-" if point.overhead is None else f"{point.overhead:+.2%}",
        "-" if bound is None else f"{max(0.0, overhead_of(bound, curve.before.cost)):+.2%}",
        "-" if gap is None else f"{gap:.2%}",
        point.status.value,
        f"{point.seconds:.1f}",
    )
    return row if curve.ran is None else (*row, *_run_of(point.ran))


def _enough(size: int) -> str:
    """A budget to ask for: rounded up, because less would be refused."""
    unit = show_bytes(size).lstrip("0123456789.")
    return Budget(Fraction(size), unit=unit).enough(size, size)


def _run_of(ran: Ran | None) -> tuple[str, str]:
    if ran is None:
        return "-", "-"
    return f"{ran.per_second:.4g}", "-" if ran.held is None else show_bytes(ran.held)


def _bounds_said(curve: Curve) -> list[str]:
    words = []
    if curve.ran:
        held = "" if curve.ran.held is None else f", {show_bytes(curve.ran.held)} held"
        words.append(
            f"As it stands the model runs {curve.ran.per_second:.4g} steps a second{held}. Each figure is a median."
        )
    if knee := curve.knee:
        words.append(
            f"The knee is at {show_bytes(knee.budget)} ({knee.budget / curve.whole:.0%}), {knee.overhead:+.1%} by "
            f"{knee.method}. Below it, time grows faster than memory shrinks."
        )
    if curve.least_peak is not None:
        least = f"{show_bytes(curve.least_peak)} (--budget {curve.least_peak})"
        words.append(
            f"Of what was tried, {least} is the least with a plan. As it stands the model holds"
            f" {show_bytes(curve.whole)}."
        )
    return words
