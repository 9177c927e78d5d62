"""Memory over time as text: for terminals, narrow ones too, and for files and pipes.

Invariant: no line is wider than asked; without colours the letters below the chart say what the colours do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remat_cli.plans.timeline import Timeline
from remat_cli.units import show_bytes, show_time

LABEL = 9  # width in letters of the sizes on the left
NARROWEST = LABEL + 12
PHASES = {"forward": "f", "recomputed": "r", "backward": "b"}
COLORS = {"forward": "34", "recomputed": "33", "backward": "32"}  # as terminals number them
BLOCKS, LETTERS = " ▁▂▃▄▅▆▇█", "    ...##"


@dataclass(frozen=True, slots=True)
class Style:
    """`blocks`: whether the terminal can draw eighths of a letter. `colors`: whether it has colours."""

    width: int = 80
    height: int = 10
    blocks: bool = True
    colors: bool = False


def chart(line: Timeline, budget: int | None, style: Style) -> str:
    """The chart from zero upwards: each column shows the peak of its stretch of time."""
    columns = _columns(line, max(style.width, NARROWEST) - LABEL - 1)
    top = max(*line.memory, budget or 0, 1)
    limit = None if budget is None else min(style.height - 1, budget * style.height // top)
    rows = [
        "".join(_cell(line, step, row, top, row == limit, style) for step in columns)
        for row in reversed(range(style.height))
    ]
    labels = {style.height - 1: show_bytes(top), 0: "0B"} | ({} if limit is None else {limit: show_bytes(budget or 0)})
    named = [f"{labels.get(style.height - 1 - place, ''):>{LABEL}} {row}" for place, row in enumerate(rows)]
    kinds = [line.phase(step) for step in columns]
    letters = "".join(_color(PHASES[kind], kind, style) for kind in kinds)
    return "\n".join((*named, f"{'':{LABEL}} {letters}", *_below(line, kinds, budget, style)))


def _columns(line: Timeline, count: int) -> list[int]:
    """For each column the compute that it shows: the one in its stretch that holds most."""
    ends = line.edges
    chosen = [-1] * count
    for step, size in enumerate(line.memory):
        first = min(count - 1, ends[step] * count // ends[-1])
        last = min(count, max(first + 1, -(-ends[step + 1] * count // ends[-1])))
        for column in range(first, last):
            if chosen[column] < 0 or size > line.memory[chosen[column]]:
                chosen[column] = step
    return chosen


def _cell(line: Timeline, step: int, row: int, top: int, limit: bool, style: Style) -> str:
    eighths = min(8, max(0, -(-8 * style.height * line.memory[step] // top) - 8 * row))
    if limit and not eighths:
        return "╌" if style.blocks else "-"
    return _color((BLOCKS if style.blocks else LETTERS)[eighths], line.phase(step), style)


def _color(letter: str, kind: str, style: Style) -> str:
    return f"\033[{COLORS[kind]}m{letter}\033[0m" if style.colors and letter != " " else letter


def _below(line: Timeline, kinds: Sequence[str], budget: int | None, style: Style) -> Iterator[str]:
    """The legend and the length of the whole step: as many words as fit in a line."""
    words = [f"{letter} {kind}" for kind, letter in PHASES.items() if kind in kinds]
    if line.begins[-1]:
        words.append(show_time(line.begins[-1]))
    if budget is not None:
        words.append(f"budget {show_bytes(budget)}")
    said = ""
    for word in words:
        longer = f"{said}, {word}" if said else word
        if said and len(longer) > max(style.width, NARROWEST) - LABEL - 1:
            yield f"{'':{LABEL}} {said}"
            longer = word
        said = longer
    yield f"{'':{LABEL}} {said}"
