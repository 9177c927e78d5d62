"""Rows as text: in columns side by side, or with commas between them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def table(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns side by side; those in `left` are aligned to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def comma_separated(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().rstrip("\n")
