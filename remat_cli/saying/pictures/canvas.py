"""The base of every picture: a figure that becomes a file, and one set of colours.

Invariant: a picture is written whole or not at all, and the same picture gives the same bytes. Names are drawn as they
are, never read as mathematics.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from remat_cli.errors import Usage
from remat_cli.formats.files import write_whole
from remat_cli.plans.roles import Role

KINDS = (".png", ".svg", ".pdf")
INK, QUIET, GRID = "#24292f", "#6e7781", "#d8dee4"
PHASES = {"forward": "#4c9be8", "recomputed": "#f28e2b", "backward": "#59a985"}
ROLES = {
    Role.PARAMETERS: "#5b6c8f",
    Role.STATE: "#8792ad",
    Role.INPUTS: "#b3bbcd",
    Role.CONSTANTS: "#d3d8e3",
    Role.FIXED: "#8792ad",
    Role.GRADIENTS: "#b07aa1",
    Role.ACTIVATIONS: "#4c9be8",
    Role.TEMPORARIES: "#59a985",
    Role.WORKSPACE: "#edc948",
}
LINES = ("#4c9be8", "#f28e2b", "#59a985", "#b07aa1", "#e15759", "#76b7b2", "#9c755f", "#edc948")
STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "grid.color": GRID,
    "legend.frameon": False,
    "svg.hashsalt": "remat",
    "pdf.fonttype": 42,
}


def check_picture(path: Path) -> None:
    """Refuse a path that cannot become a picture, before any work is done for it."""
    if path.suffix.lower() not in KINDS:
        raise Usage(f"'{path}' is no picture: end it with .png, .svg or .pdf")
    if find_spec("matplotlib") is None:
        raise Usage("pictures need matplotlib: pip install 'remat[plot]'")


@contextmanager
def drawing(path: Path, width: float, height: float) -> Iterator[Any]:
    """A figure of so many inches, written to `path` when all is drawn."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    kind = path.suffix[1:].lower()
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
        yield figure
        content = io.BytesIO()
        with warnings.catch_warnings():  # the font lacks some letters; they are drawn as boxes
            warnings.simplefilter("ignore", UserWarning)
            figure.savefig(content, format=kind, metadata=undated[kind])
    write_whole(path, content.getvalue())


def title(axes: Any, words: str, below: str = "") -> None:
    """The title of the picture, and a line in smaller letters under it."""
    axes.set_title(plain(words), loc="left", fontsize=13, fontweight="bold", color=INK, pad=24 if below else 10)
    if below:
        axes.annotate(
            plain(below), (0, 1), (0, 9), "axes fraction", textcoords="offset points", fontsize=9, color=QUIET
        )


def plain(words: str) -> str:
    """The words as they can be drawn in one line of any kind of picture."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in words)


def short(name: str, most: int = 40) -> str:
    """A name without its middle, if it is long."""
    name = plain(name)
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-(most // 2) :]}"


def unit(most: float, units: Iterable[tuple[str, float]]) -> tuple[str, float]:
    """The largest of these units in which the most is at least one."""
    fitting = [pair for pair in units if pair[1] <= most]
    return max(fitting or list(units), key=lambda pair: pair[1] if fitting else -pair[1])


BYTES = (("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))
TIMES = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))
