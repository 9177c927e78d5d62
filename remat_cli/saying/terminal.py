"""The abilities of the terminal: whether lines can be written over, its width, and whether colours are wanted."""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size
from typing import TextIO


def writes_over() -> bool:
    """Whether stderr is a terminal that can write over a line."""
    return sys.stderr.isatty() and _knows_codes()


def has_colors(stream: TextIO) -> bool:
    return stream.isatty() and _knows_codes() and not os.environ.get("NO_COLOR")


def clip(words: str, end: str = "") -> str:
    """As much of the words as fits in a row beside the end, because a wrapped line cannot be written over. One column
    stays empty, because some terminals wrap there."""
    width = get_terminal_size().columns - 1 - len(end)
    return (words if len(words) <= width else words[: max(0, width - 3)] + "...") + end


def _knows_codes() -> bool:
    return os.environ.get("TERM", "") not in ("", "dumb")
