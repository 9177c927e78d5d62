"""Extra time over budget: a line for each method, below them what is proved, and the knee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remat_cli.planning.points import Curve, Point
from remat_cli.saying.pictures import canvas
from remat_cli.saying.units import show_bytes

MARKERS = "osD^v<>Pp*hX"


def draw_curve(path: Path, curve: Curve) -> None:
    unit, scale = canvas.unit(curve.whole, canvas.BYTES)
    methods = list(dict.fromkeys(point.method for point in curve.points))
    with canvas.drawing(path, 8, 5) as figure:
        axes = figure.subplots()
        for place, method in enumerate(methods):
            own = [point for point in curve.points if point.method == method and point.overhead is not None]
            style = {"color": canvas.LINES[place % len(canvas.LINES)], "marker": MARKERS[place % len(MARKERS)]}
            over = [_percent(point.cost, curve) for point in own]
            label = method if own else f"{method}: no plan"
            axes.plot([point.budget / scale for point in own], over, label=label, markersize=5, **style)
        _bound(axes, curve, scale)
        _whole(axes, curve, scale)
        if knee := curve.knee:
            _point_out(axes, curve, knee, scale)
        axes.set_xlabel(f"budget ({unit})")
        axes.set_ylabel("extra time (%)")
        axes.set_ylim(bottom=min(-1.0, -0.03 * axes.get_ylim()[1]))
        axes.grid(linewidth=0.6)
        axes.legend(loc="upper right", bbox_to_anchor=(0.96, 1.0), fontsize=9)
        canvas.title(axes, f"What less memory costs: {curve.subject.path.name}")


def _percent(cost: int | None, curve: Curve) -> float:
    return 100 * ((cost or 0) / max(curve.before.cost, 1) - 1)


def _bound(axes: Any, curve: Curve, scale: float) -> None:
    """What no schedule at all costs less than."""
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
    place = (knee.budget / scale, _percent(knee.cost, curve))
    words = f"knee: {show_bytes(knee.budget)}, {knee.overhead:+.1%}"
    arrow = {"arrowstyle": "->", "color": canvas.QUIET}
    axes.annotate(words, place, (24, 44), textcoords="offset points", arrowprops=arrow, fontsize=9)
