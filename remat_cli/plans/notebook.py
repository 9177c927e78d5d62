"""How a notebook shows an answer: a small table, with a picture under it.

Invariant: the output has no script and fetches nothing, and every word is escaped. A picture draws text in the page's
own colour, so that it can be read on a dark page too.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from remat_cli.plans.timeline import Timeline
from remat_cli.units import show_bytes

WIDE, HIGH, ROOM = 480, 150, 18  # of a picture, in points; ROOM is left above and below for lines of text
BEFORE, AFTER = "#999999", "#2a6fbb"
Spot = tuple[float, float]


def shown(caption: str, rows: Sequence[Sequence[str]], head: Sequence[str] = (), picture: str = "") -> str:
    """A table whose first column has the names, with the picture under it."""
    lines = [f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>"] if head else []
    for name, *cells in rows:
        lines.append(f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>{picture}"


def memory_over_time(before: Timeline, after: Timeline, budget: int) -> str:
    """Both schedules over the same axes, which begin at zero, and the budget as a line."""
    old, new = (max(line.memory, default=0) for line in (before, after))
    top, last = max(old, new, budget, 1), max(before.edges[-1], after.edges[-1], 1)
    shapes = [_area(line, top, last, color) for line, color in ((before, BEFORE), (after, AFTER))]
    y = _up(budget, top)
    level = f'<line x1="0" y1="{y:.1f}" x2="{WIDE}" y2="{y:.1f}" stroke="currentColor" stroke-dasharray="4"/>'
    words = f"memory over time: {show_bytes(old)} as it stands (grey), {show_bytes(new)} planned (blue)"
    return _picture([*shapes, level], words, f"dashed: the budget, {show_bytes(budget)}")


def overhead_by_budget(spots: Sequence[tuple[int, float]]) -> str:
    """A dot for each plan of a curve: budget to the right, overhead upwards. The picture is empty where there is no
    plan."""
    if not spots:
        return ""
    widest, dearest = max(budget for budget, _ in spots), max(0.001, *(over for _, over in spots))
    at = [(_across(budget, widest), _up(over, dearest)) for budget, over in sorted(spots)]
    line = f'<polyline points="{_joined(at)}" fill="none" stroke="{AFTER}"/>'
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{AFTER}"/>' for x, y in at]
    return _picture([line, *dots], f"overhead by budget: up to {dearest:+.1%}", f"0 to {show_bytes(widest)}")


def bars(sizes: Sequence[tuple[str, int]]) -> str:
    """A bar for each size, its name on it."""
    top, step = max(1, *(size for _, size in sizes)), HIGH / max(1, len(sizes))
    shapes = []
    for number, (name, size) in enumerate(sizes):
        y, color = ROOM + number * step, AFTER if number else BEFORE
        wide = _across(size, top)
        shapes.append(f'<rect x="0" y="{y:.1f}" width="{wide:.1f}" height="{0.7 * step:.1f}" fill="{color}"/>')
        shapes.append(_text(6, y + 0.45 * step, f"{name}: {show_bytes(size)}"))
    return _picture(shapes, "held, from zero", "")


def _area(line: Timeline, top: int, last: int, color: str) -> str:
    """The area under the memory curve; each dot's width shows the most held within it."""
    columns, edges = [0] * (WIDE + 1), line.edges
    for step, size in enumerate(line.memory):
        for column in range(int(_across(edges[step], last)), int(_across(edges[step + 1], last)) + 1):
            columns[column] = max(columns[column], size)
    end = int(_across(edges[-1], last))
    spots = [(float(column), _up(size, top)) for column, size in enumerate(columns[: end + 1])]
    outline = _joined([(0.0, _up(0, 1)), *spots, (float(end), _up(0, 1))])
    return f'<polygon points="{outline}" fill="{color}" fill-opacity="0.35" stroke="{color}"/>'


def _picture(shapes: Sequence[str], above: str, below: str) -> str:
    words = [_text(0, ROOM - 6, above), _text(0, ROOM + HIGH + ROOM - 5, below)]
    size = f'width="{WIDE}" height="{HIGH + 2 * ROOM}" viewBox="-4 0 {WIDE + 8} {HIGH + 2 * ROOM}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{"".join((*shapes, *words))}</svg>'


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" fill="currentColor">{escape(words)}</text>'


def _across(part: float, whole: float) -> float:
    return WIDE * part / whole


def _up(part: float, whole: float) -> float:
    return ROOM + HIGH * (1 - part / whole)


def _joined(spots: Sequence[Spot]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
