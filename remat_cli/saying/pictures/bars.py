"""What fills the memory, as stacked bars (Checkmate's Figure 3): one for each model as it stands and each plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remat_cli.saying.pictures import canvas
from remat_cli.saying.several import Bar, roles_used
from remat_cli.units import show_bytes

WIDEST = 0.72  # width of a bar; bars are 1 apart


def draw_bars(path: Path, every: Sequence[Bar], words: str = "What fills the memory at the peak") -> None:
    name, scale = canvas.unit(max(*(bar.filled.total for bar in every), 1), canvas.BYTES)
    places = _places(every)
    with canvas.drawing(path, max(6.0, 2.6 + 0.95 * places[-1]), 5) as figure:
        axes = figure.subplots()
        floors = [0.0] * len(every)
        for role in roles_used(every):
            heights = [bar.sizes.get(role, 0) / scale for bar in every]
            axes.bar(places, heights, WIDEST, floors, color=canvas.ROLES[role], label=role.value)
            floors = [low + high for low, high in zip(floors, heights, strict=True)]
        top = max(*floors, *((bar.budget or 0) / scale for bar in every), 1e-9)
        axes.set_ylim(0, 1.12 * top)
        for place, bar, floor in zip(places, every, floors, strict=True):
            _figures(axes, place, bar, floor, scale)
        _names(axes, places, every)
        axes.set_ylabel(f"memory ({name})")
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        handles, names = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], names[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        canvas.title(axes, words)


def _places(every: Sequence[Bar]) -> list[float]:
    """The position of each bar: plans stand close to the model that they are plans of."""
    places = [0.0]
    for bar in every[1:]:
        places.append(places[-1] + (0.85 if bar.made_by else 1.25))
    return places


def _names(axes: Any, places: Sequence[float], every: Sequence[Bar]) -> None:
    """The name under each bar; a model's name stands once below all of its plans."""
    axes.tick_params(axis="x", length=0, colors=canvas.INK, labelsize=9)
    if not any(bar.made_by for bar in every):
        names = [canvas.short(bar.name, 24) for bar in every]
        slanted = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 11 else {}
        axes.set_xticks(places, names, **slanted)
        return
    words = [f"{show_bytes(bar.budget or 0)}\n{canvas.short(bar.made_by, 13)}" if bar.made_by else "" for bar in every]
    axes.set_xticks(places, [word or "as it\nstands" for word in words])
    for name in dict.fromkeys(bar.name for bar in every):
        own = [place for place, bar in zip(places, every, strict=True) if bar.name == name]
        middle = ((own[0] + own[-1]) / 2, 0)
        below = {"xytext": (0, -34), "textcoords": "offset points", "ha": "center", "va": "top", "fontweight": "bold"}
        axes.annotate(canvas.short(name, 3 + 12 * len(own)), middle, fontsize=9, **below)


def _figures(axes: Any, place: float, bar: Bar, floor: float, scale: float) -> None:
    height = (bar.budget or 0) / scale
    near = floor <= height < floor + 0.06 * axes.get_ylim()[1]  # the figure then stands above the line
    axes.annotate(
        show_bytes(bar.filled.total),
        (place, height if near else floor),
        (0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=9,
        color=canvas.INK,
    )
    if bar.budget is not None:
        half = WIDEST / 2 + 0.04
        axes.plot([place - half, place + half], [height, height], color="#cf222e", linewidth=1.2, linestyle=(0, (4, 2)))
