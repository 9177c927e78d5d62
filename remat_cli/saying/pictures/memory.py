"""Memory over time: one plan beside the model without a plan, or several plans in one picture.

Invariant: the width of an op is its time; both axes begin at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remat_cli.formats.files import stem_of
from remat_cli.plans.roles import Role
from remat_cli.plans.timeline import Timeline
from remat_cli.saying.pictures import canvas
from remat_cli.saying.showing import Shown
from remat_cli.units import show_bytes

LISTED_VALUES = 4  # how many of the values that fill the peak are listed
# for each third of the width: its start, the position of text in it, and the text's alignment
THIRDS = ((0.02, 0.02, "left"), (0.36, 0.53, "center"), (0.65, 0.98, "right"))
DASHES = ("-", "-.", ":")  # line styles of models without a plan


def draw_memory(path: Path, every: Sequence[Shown]) -> None:
    with canvas.drawing(path, 10, 5) as figure:
        axes = figure.subplots()
        scale = _Scale(every)
        if len(every) == 1:
            _one(axes, every[0], scale)
        else:
            _several(axes, every, scale)
        scale.label(axes)
        figure.legend(loc="outside lower center", ncols=4 if len(every) == 1 else 2, fontsize=9)


class _Scale:
    """The units of the axes. A problem whose ops cost nothing is drawn by the index of its computes."""

    def __init__(self, every: Sequence[Shown]) -> None:
        self.timed = all(found.before.cost for found in every)
        self.named = all(found.subject.graph is not None for found in every)
        lines = [line for found in every for line in found.lines]
        budgets = [found.recorded.budget for found in every if found.recorded]
        self.top = max(*(max(line.memory) for line in lines), *budgets, 1)
        self.last = max(*(self._ends(line)[-1] for line in lines), 1)
        self.bytes, self.byte = canvas.unit(self.top, canvas.BYTES)
        self.time, self.tick = canvas.unit(self.last, canvas.TIMES) if self.timed and self.named else ("", 1.0)

    def _ends(self, line: Timeline) -> Sequence[int]:
        return line.begins if self.timed else range(len(line.order) + 1)

    def edges(self, line: Timeline) -> list[float]:
        return [moment / self.tick for moment in self._ends(line)]

    def edges_at(self, line: Timeline, step: int) -> tuple[float, float]:
        ends = self._ends(line)
        return ends[step] / self.tick, ends[step + 1] / self.tick

    def sizes(self, sizes: Sequence[int]) -> list[float]:
        return [size / self.byte for size in sizes]

    def label(self, axes: Any) -> None:
        axes.set_xlim(0, self.last / self.tick)
        axes.set_ylim(0, 1.3 * self.top / self.byte)
        axes.set_ylabel(f"memory ({self.bytes})")
        axes.set_xlabel((f"time ({self.time})" if self.time else "time") if self.timed else "computes")
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)


def _one(axes: Any, found: Shown, scale: _Scale) -> None:
    old, new = found.lines
    floor = _bands(axes, found, scale)
    edges, memory = scale.edges(new), scale.sizes(new.memory)
    for phase, color in canvas.PHASES.items():
        here = [size if new.phase(step) == phase else float("nan") for step, size in enumerate(memory)]
        if any(size == size for size in here):
            axes.stairs(here, edges, baseline=floor, fill=True, color=color, alpha=0.85, linewidth=0, label=phase)
    axes.stairs(memory, edges, baseline=None, color=canvas.INK, linewidth=0.7)
    if found.recorded:
        before = f"as it stands: {show_bytes(found.before.peak)}"
        axes.stairs(
            scale.sizes(old.memory), scale.edges(old), baseline=None, color=canvas.QUIET, linewidth=1.1, label=before
        )
        _budget(axes, found.recorded.budget, scale)
    _peak(axes, found, scale)
    canvas.title(axes, *_words(found))


def _bands(axes: Any, found: Shown, scale: _Scale) -> float:
    """Draw the memory that is held throughout, from the bottom up; the result is its upper end."""
    floor = 0.0
    for role, size in sorted(found.parts.fixed.items(), key=lambda pair: list(Role).index(pair[0])):
        if size:
            height = size / scale.byte
            color, words = canvas.ROLES[role], f"{role.value}: {show_bytes(size)}"
            axes.axhspan(floor, floor + height, color=color, linewidth=0, label=words)
            floor += height
    return floor


def _budget(axes: Any, budget: int, scale: _Scale) -> None:
    axes.axhline(budget / scale.byte, linestyle=(0, (5, 3)), color="#cf222e", linewidth=1.2)
    where = {"xytext": (-4, 3), "textcoords": "offset points", "ha": "right", "va": "bottom"}
    axes.annotate(
        f"budget {show_bytes(budget)}",
        (scale.last / scale.tick, budget / scale.byte),
        color="#cf222e",
        fontsize=9,
        **where,
    )


def _peak(axes: Any, found: Shown, scale: _Scale) -> None:
    """Mark the peak with its op and the largest values held then."""
    line, step = found.lines[1], found.lines[1].peak_step
    edges = scale.edges(line)
    x, y = (edges[step] + edges[step + 1]) / 2, line.memory[step] / scale.byte
    held = line.held(step)
    names = [
        f"{show_bytes(block.bytes):>8}  {canvas.short(found.subject.values[block.value])}"
        for block in held[:LISTED_VALUES]
    ]
    if work := line.problem.nodes[line.order[step]].workspace:
        names.append(f"{show_bytes(work):>8}  workspace")
    if len(held) > LISTED_VALUES:
        names.append(f"and {len(held) - LISTED_VALUES} smaller")
    words = f"peak {show_bytes(line.memory[step])} at {canvas.short(found.subject.nodes[line.order[step]])}"
    place, side = _free(found, scale, x)
    axes.plot([x], [y], marker="o", markersize=5, color=canvas.INK, zorder=6)
    axes.annotate(
        "\n".join((words, *names)),
        (x, y),
        (place, 1.27 * scale.top / scale.byte),
        ha=side,
        multialignment="left",
        va="top",
        fontsize=8,
        family="monospace",
        bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": canvas.GRID, "alpha": 0.92},
        arrowprops={"arrowstyle": "-", "color": canvas.QUIET, "linewidth": 0.8},
        zorder=7,
    )


def _free(found: Shown, scale: _Scale, x: float) -> tuple[float, str]:
    """A position for text above the curves, and its alignment: in the third where the curves are lowest, nearest to
    `x`."""
    whole = scale.last / scale.tick

    def highest(left: float) -> int:
        steps = ((line, step) for line in found.lines for step in range(len(line.order)))
        spans = ((scale.edges_at(line, step), line.memory[step]) for line, step in steps)
        return max((size for (begin, end), size in spans if begin <= left + whole / 3 and end >= left), default=0)

    def worse(third: tuple[float, float, str]) -> tuple[int, float]:
        return round(3 * highest(third[0] * whole) / scale.top), abs(third[0] * whole + whole / 6 - x)

    _, place, side = min(THIRDS, key=worse)
    return place * whole, side


def _words(found: Shown) -> tuple[str, str]:
    name, recorded = found.subject.path.name, found.recorded
    ops = len(found.subject.nodes)
    if recorded is None:
        return f"{name}: {show_bytes(found.before.peak)} as it stands", f"{ops} ops, each run once"
    share = found.after.peak / max(found.before.peak, 1)
    words = f"{name}: {share:.0%} of the memory, {found.overhead:+.1%} time"
    again = sum(found.lines[1].again)
    made = f"{recorded.method}, {recorded.status}, {recorded.session} session"
    return (
        words,
        f"{show_bytes(found.before.peak)} to {show_bytes(found.after.peak)}; {ops} ops, {again} run again; {made}",
    )


def _several(axes: Any, every: Sequence[Shown], scale: _Scale) -> None:
    floors = {tuple(sorted((role.value, size) for role, size in found.parts.fixed.items())) for found in every}
    if len(floors) == 1:
        _bands(axes, every[0], scale)
    seen: list[str] = []
    for number, found in enumerate(every):
        color = canvas.LINES[number % len(canvas.LINES)]
        if found.subject.source.sha256 not in seen:
            seen.append(found.subject.source.sha256)
            words = f"{canvas.short(found.name, 24)} as it stands: {show_bytes(found.before.peak)}"
            dark = {"color": canvas.QUIET if found.recorded else color, "linewidth": 1.1}
            dark["linestyle"] = DASHES[(len(seen) - 1) % len(DASHES)]
            axes.stairs(
                scale.sizes(found.lines[0].memory), scale.edges(found.lines[0]), baseline=None, label=words, **dark
            )
        if found.recorded:
            words = f"{label(found)}: {show_bytes(found.after.peak)}, {found.overhead:+.1%} time"
            memory, edges = scale.sizes(found.lines[1].memory), scale.edges(found.lines[1])
            axes.stairs(memory, edges, baseline=None, color=color, linewidth=1.2, label=words)
            axes.axhline(found.recorded.budget / scale.byte, linestyle=(0, (5, 3)), color=color, linewidth=0.8)
    names = list(dict.fromkeys(found.subject.path.name for found in every))
    canvas.title(axes, f"Memory over time: {canvas.short(', '.join(names), 50)}", "budgets are dashed")


def label(found: Shown) -> str:
    """The label that tells a plan from others: its file, its method and its budget."""
    name = stem_of(found.path)
    return f"{canvas.short(name, 24)} ({found.recorded.method})" if found.recorded else canvas.short(found.name, 24)
