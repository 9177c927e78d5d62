"""The parameters of a training step as a table."""

from __future__ import annotations

from collections.abc import Sequence

from remat_cli.gradient.parameters import Parameter
from remat_cli.saying.report import table
from remat_cli.units import show_bytes

LARGEST_ROWS = 8  # rows of the table, unless all are asked for


def parameter_table(parameters: Sequence[Parameter], every: bool) -> str:
    """The largest parameters, or all of them. The others share one row, so that the columns add up."""
    ranked = parameters if every else sorted(parameters, key=lambda one: -one.bytes)
    shown = ranked if every or len(ranked) <= LARGEST_ROWS + 1 else ranked[:LARGEST_ROWS]
    rows = [["parameter", "shape", "read", "gradient"]]
    rows += [
        [one.name, "x".join(map(str, one.shape)) or "scalar", str(one.reads), show_bytes(one.bytes)] for one in shown
    ]
    if rest := ranked[len(shown) :]:
        rows.append([f"{len(rest)} more (--table)", "", "", show_bytes(sum(one.bytes for one in rest))])
    rows.append([f"{len(parameters)} in all", "", "", show_bytes(sum(one.bytes for one in parameters))])
    return table(rows, left=(0, 1))
