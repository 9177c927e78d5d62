"""What a program gives that is looked at before anything heavy is imported: paths, lists, providers.

Invariant: what cannot be meant is a Usage that says what can; nothing else is raised here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from remat_cli.arguments import brief, may_name
from remat_cli.errors import RematWarning, Usage

CPU = ("CPUExecutionProvider",)
File: TypeAlias = str | os.PathLike[str]


def path_of(given: File, what: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise Usage(f"{what} is a path, not {type(given).__name__}")
    path = Path(os.fsdecode(given))
    if not may_name(path):
        raise Usage(f"{what}: no file can be called {brief(str(path))}")
    return path


def items_of(given: Any, what: str) -> tuple[Any, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise Usage(f"{what} is a list, not {brief(given)}")
    try:
        return tuple(given)
    except TypeError as error:  # what says that it can be walked through, and cannot, as a tensor of one number
        raise Usage(f"{what} is a list, not {brief(given)}") from error


def warn(notes: Iterable[str], depth: int = 3) -> None:
    """Notes as warnings, of the line of the user's program that is so many calls up."""
    for note in notes:
        warnings.warn(note, RematWarning, stacklevel=depth)
