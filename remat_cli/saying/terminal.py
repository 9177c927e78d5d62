"""What the terminal can do: whether lines may be written over, how wide it is, whether colours are wanted."""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size
from typing import TextIO


def writes_over() -> bool:
    """Whether what stands on stderr can be taken back: by somebody who looks, on a terminal that knows how."""
    return sys.stderr.isatty() and _knows_codes()


def has_colors(stream: TextIO) -> bool:
    return stream.isatty() and _knows_codes() and not os.environ.get("NO_COLOR")


def clip(words: str, end: str = "") -> str:
    """As much as fits a row beside the end: what wraps cannot be written over. The last column would wrap on some
    terminals."""
    width = get_terminal_size().columns - 1 - len(end)
    return (words if len(words) <= width else words[: max(0, width - 3)] + "...") + end


def _knows_codes() -> bool:
    return os.environ.get("TERM", "") not in ("", "dumb")
