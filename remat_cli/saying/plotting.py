"""Pictures, by matplotlib, which is an extra. Invariant: a picture is written whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path

from remat_cli.errors import Usage
from remat_cli.formats.files import write_whole
from solvers.simulate import Outcome


def draw_memory(path: Path, before: Outcome, after: Outcome, budget: int) -> None:
    """Memory during each compute, before and after, side by side."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Usage("pictures need matplotlib: pip install 'remat[plot]'") from error
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise Usage(f"'{path}' is no picture: end it with .png, .svg or .pdf")
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    for outcome, name in ((before, "before"), (after, "after")):
        axes.step(range(len(outcome.memory)), [m / 1e6 for m in outcome.memory], where="mid", label=name)
    axes.axhline(budget / 1e6, linestyle="--", color="black", linewidth=1, label="budget")
    axes.set_xlabel("computes")
    axes.set_ylabel("memory in MB")
    axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower())
    write_whole(path, content.getvalue())
