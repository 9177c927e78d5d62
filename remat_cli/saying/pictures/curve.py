"""Extra time over budget: a line for each method, below them what is proved, and the knee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remat_cli.model.proved import overhead_of
from remat_cli.plans.points import Curve, Point
from remat_cli.saying.pictures import canvas
from remat_cli.units import show_bytes

MARKERS = "osD^v<>Pp*hX"
LEAST_TOP = 5.0  # percent; the axis reaches at least this far, so that small overheads look small


def draw_curve(path: Path, curve: Curve) -> None:
    """Draw the curve. A measured curve also has the time and memory of the models when they ran (as in Rotor's
    figures)."""
    unit, scale = canvas.unit(curve.whole, canvas.BYTES)
    panels = 1 if curve.ran is None else 2
    with canvas.drawing(path, 8 if panels == 1 else 13, 5) as figure:
        every = figure.subplots(1, panels, squeeze=False)[0]
        _draw_plans(every[0], curve, scale)
        every[0].set_xlabel(f"budget ({unit})")
        if curve.ran is not None:
            _throughput(every[1], curve, scale)
            every[1].set_xlabel(f"memory held when it ran ({unit})")
        figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)


def _draw_plans(axes: Any, curve: Curve, scale: float) -> None:
    for method, style in _styles(curve).items():
        own = [point for point in curve.points if point.method == method and point.overhead is not None]
        over = [_percent(point.time, curve) for point in own]
        axes.plot([point.budget / scale for point in own], over, label=method if own else f"{method}: no plan", **style)
    _bound(axes, curve, scale)
    _whole(axes, curve, scale)
    axes.set_ylabel("extra time (%)")
    top = max(axes.get_ylim()[1], LEAST_TOP)
    axes.set_ylim(-0.03 * top, top)
    if knee := curve.knee:
        _point_out(axes, curve, knee, scale)
    axes.grid(linewidth=0.6)
    canvas.title(axes, f"What less memory costs: {curve.subject.path.name}")


def _throughput(axes: Any, curve: Curve, scale: float) -> None:
    for method, style in _styles(curve).items():
        own = [p.ran for p in curve.points if p.method == method and p.ran is not None and p.ran.held is not None]
        places, rates = [(ran.held or 0) / scale for ran in own], [ran.per_second for ran in own]
        axes.plot(places, rates, linestyle="none", **style)
    if curve.ran is not None and curve.ran.held is not None:
        place = (curve.ran.held / scale, curve.ran.per_second)
        axes.plot(*place, marker="*", markersize=11, color=canvas.QUIET, linestyle="none")
        axes.annotate("as it is", place, (6, 4), textcoords="offset points", fontsize=8, color=canvas.QUIET)
    axes.set_ylabel("steps a second")
    axes.set_ylim(bottom=0)
    axes.grid(linewidth=0.6)
    canvas.title(axes, "Measured")


def _styles(curve: Curve) -> dict[str, dict[str, Any]]:
    methods = dict.fromkeys(point.method for point in curve.points)
    return {
        method: {
            "color": canvas.LINES[place % len(canvas.LINES)],
            "marker": MARKERS[place % len(MARKERS)],
            "markersize": 5,
        }
        for place, method in enumerate(methods)
    }


def _percent(cost: int | None, curve: Curve) -> float:
    return 100 * overhead_of(cost or 0, curve.before.cost)


def _bound(axes: Any, curve: Curve, scale: float) -> None:
    """Draw the cost that no schedule at all goes below."""
    bounds = {point.budget: point.bound_any_order for point in curve.points if point.bound_any_order is not None}
    if len(bounds) > 1:
        places, over = zip(
            *((budget / scale, _percent(bounds[budget], curve)) for budget in sorted(bounds)), strict=True
        )
        axes.plot(places, over, linestyle="--", color=canvas.INK, linewidth=1, label="proved: nothing takes less")


def _whole(axes: Any, curve: Curve, scale: float) -> None:
    axes.axvline(curve.whole / scale, color=canvas.QUIET, linewidth=1, linestyle=":")
    place, words = (curve.whole / scale, 1.0), f"as it is, {show_bytes(curve.whole)}"
    turned = {"rotation": 90, "ha": "right", "va": "top", "color": canvas.QUIET, "fontsize": 8}
    axes.annotate(words, place, (-3, -2), ("data", "axes fraction"), "offset points", **turned)


def _point_out(axes: Any, curve: Curve, knee: Point, scale: float) -> None:
    """Mark the knee with words above the curve, which falls to the right."""
    place = (knee.budget / scale, _percent(knee.time, curve))
    words = f"knee: {show_bytes(knee.budget)}, {knee.overhead:+.1%}"
    right, high = (there > sum(ends) / 2 for there, ends in zip(place, (axes.get_xlim(), axes.get_ylim()), strict=True))
    across, side = (-24, "right") if right else (24, "left")
    arrow = {"arrowstyle": "->", "color": canvas.QUIET}
    where = (across, 0 if high else 44)
    axes.annotate(words, place, where, textcoords="offset points", arrowprops=arrow, fontsize=9, ha=side)
