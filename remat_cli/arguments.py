"""What a program may give as a number, a switch or a word: each is checked here, whoever takes it.

Invariant: what cannot be meant is a Usage of one short line; no other error is raised here.
"""

from __future__ import annotations

import os
from errno import ENAMETOOLONG
from math import isfinite
from operator import index
from pathlib import Path
from typing import Any

from remat_cli.errors import Usage

SHOWN_LETTERS = 60


def whole_number(given: Any, what: str, least: int | None = 0) -> int:
    """A whole number that is not less than the least."""
    try:
        found = None if isinstance(given, bool) else index(given)
    except (TypeError, RuntimeError):
        found = None
    if found is None:
        raise Usage(f"{what} is a whole number, not {brief(given)}")
    if least is not None and found < least:
        raise Usage(f"{what} is at least {least}, not {brief(found)}")
    return found


def number(given: Any, what: str, least: float = 0.0) -> float:
    """A finite number that is not less than the least."""
    found = None if isinstance(given, str) else as_float(given)
    if found is None or not isfinite(found) or found < least:
        raise Usage(f"{what} is a number, at least {least:g}, not {brief(given)}")
    return found


def as_float(given: Any) -> float | None:
    """The number that is given, or that a text spells; None where it is something else."""
    if isinstance(given, bool | bytes | bytearray) or "bool" in str(getattr(given, "dtype", "")):
        return None
    try:
        return float(given)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def switch(given: Any, what: str) -> bool:
    """True or False: of words, even "off" would mean True."""
    if not isinstance(given, bool):
        raise Usage(f"{what} is True or False, not {brief(given)}")
    return given


def word(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise Usage(f"{what} is a word, not {brief(given)}")
    return given


def as_word(given: Any) -> str:
    """A word as it is, and anything else as Python writes it."""
    return given if isinstance(given, str) and len(given) < SHOWN_LETTERS else brief(given)


def may_name(path: Path) -> bool:
    """Whether a file can be called so, be there one or not."""
    try:
        os.stat(path)
    except OSError as error:
        return error.errno != ENAMETOOLONG  # whoever opens it says what else is wrong
    except ValueError:  # a zero is in it
        return False
    return True


def brief(given: Any) -> str:
    """How Python writes it, on one short line."""
    text = " ".join(repr(given).split())
    return text if len(text) <= SHOWN_LETTERS else f"{text[: SHOWN_LETTERS - 3]}..."
