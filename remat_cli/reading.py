"""Files that others made, read within limits.

Invariant: only regular files are read whole, and no more of them than the limit; what JSON is let through is no deeper
than the limit and holds nothing that could not be written again as text.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remat_cli.errors import BadInput
from remat_cli.limits import NESTING_LEVELS, TEXT_BYTES


def read_whole(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes."""
    try:
        with open(path, "rb", opener=_patiently) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise BadInput(f"cannot read {path}: it is not a regular file")
            if state.st_size > most:
                raise BadInput(f"{path} has {state.st_size} bytes; such a file may have {most}")
            return file.read(state.st_size)  # a larger number would be memory asked for
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"cannot read {str(path)!r}: no file can be called that") from error


def _patiently(name: str, flags: int) -> int:
    """A pipe that nobody writes to is opened all the same, and then refused."""
    return os.open(name, flags | os.O_NONBLOCK)


def parse_json(content: bytes | str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """What the text says. Raises ValueError, in words, for what is not JSON, is nested too deeply or has no text."""
    try:
        found = json.loads(content, object_pairs_hook=pairs)
    except UnicodeDecodeError as error:
        raise ValueError("it is not even text") from error
    except RecursionError as error:
        raise ValueError(f"it is nested more than {NESTING_LEVELS} deep") from error
    plain = content.isascii() and (b"\\u" if isinstance(content, bytes) else "\\u") not in content  # type: ignore[operator]
    leaves = (int, str) if plain else int
    waiting = [(found, 0)]
    while waiting:
        thing, depth = waiting.pop()
        if depth > NESTING_LEVELS:
            raise ValueError(f"it is nested more than {NESTING_LEVELS} deep")
        if isinstance(thing, dict):
            waiting += [(part, depth + 1) for pair in thing.items() for part in pair if not isinstance(part, leaves)]
        elif isinstance(thing, list):
            waiting += [(part, depth + 1) for part in thing if not isinstance(part, leaves)]
        elif isinstance(thing, str) and not (thing.isascii() and "\0" not in thing) and not _is_text(thing):
            raise ValueError(f"{thing!r} holds what no text can hold")
    return found


def read_object(path: Path, form: str, called: str, writer: str) -> dict[str, Any]:
    """What a file of ours of this format says. `called`: what such files are; `writer`: the command that makes one."""
    made = f"make one with '{writer}'"
    try:
        found = parse_json(read_whole(path, TEXT_BYTES))
    except ValueError as error:
        raise BadInput(f"{path} is not {called}, or truncated: {error}; {made}") from error
    said = found.get("format") if isinstance(found, dict) else None
    if newer := written_by_newer(said, form):
        raise BadInput(f"{path}: {newer}, or {made}")
    if not isinstance(found, dict) or said != form:
        raise BadInput(f"{path} is not {called} of format {form}; {made}")
    return found


def written_by_newer(said: object, known: str) -> str | None:
    """What is wrong with a file whose format is a later one of the same kind; None for any other."""
    kind, _, number = str(said).partition("/")
    own, _, newest = known.partition("/")
    if kind != own or not number.isdigit() or int(number) <= int(newest):
        return None
    return f"its format is {said}, which a newer remat wrote, and this one reads {known}: update remat"


def _is_text(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)
