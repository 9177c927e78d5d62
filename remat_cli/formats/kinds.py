"""The kinds of files that remat writes where a user says, and how one is known by its first bytes.

Invariant: a file is written over only by one of its own kind, and never where it is being read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from remat_cli.errors import BadInput, InTheWay, Usage

HEAD_BYTES = 4096
DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))  # where files are read, such as /dev/stdin


class FileKind(Enum):
    """What such a file is called, and a pattern of its first bytes."""

    MODEL = "a model", rb"\x08.{1,2}[\x12\x1a\x22\x28\x32\x3a\x42\x72]"  # its version, then another field
    PLAN = "a plan", rb'\{\s*"format": "remat-plan/'
    CERTIFICATE = "a certificate", rb'\{\s*"format": "remat-certificate/'
    PROBLEM = "a problem", rb'\{\s*"format": "remat-problem/'
    CHAIN = "a chain", rb'\{\s*"format": "remat-chain/'
    COSTS = "a cost file", rb"(.*\n)?schema\s*:"
    CURVE = "a curve", rb'\{\s*"(model|error)":'
    VERIFIED = "a report of verify", rb'\{\s*"(ok|error)":'
    BATCH = "a report of batch", rb'\{\s*"format": "remat-report/'
    JUNIT = "a report in JUnit's form", rb'<\?xml[^>]*>\s*<testsuites name="remat batch"'
    MARKDOWN = "a report in Markdown", rb"\*\*remat batch\*\*"
    CSV = "a table of batch", rb"model,budget,method,session,"
    PLACES = "a file of places", rb"remat-places "
    PAGE = "a page of show", rb"<!doctype html>.*Content-Security-Policy"
    PICTURE = "a picture", rb"\x89PNG|%PDF|<\?xml[^>]*>\s*<!DOCTYPE svg"
    CHECKPOINT = "a checkpoint", rb"PK\x03\x04.{26}(value of |sum of |counts\.npy)"

    @property
    def called(self) -> str:
        return self.value[0]

    def begins(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes may be of this kind."""
        return re.match(self.value[1], head, re.DOTALL) is not None


def check_places(written: Iterable[tuple[Path | None, FileKind]], *inputs: Path | None) -> None:
    """`check_place` of all that one command writes; no two of them in one place."""
    places = list(written)
    check_apart(*(path for path, _ in places))
    for path, kind in places:
        check_place(path, kind, *inputs)


def check_apart(*written: Path | None) -> None:
    """Refuse a place where the command writes two things, of which one would be lost."""
    seen: set[Path] = set()
    for path in filter(None, written):
        if path.resolve() in seen:
            raise Usage(f"{path} would be written twice; name another file")
        seen.add(path.resolve())


def check_place(output: Path | None, kind: FileKind, *inputs: Path | None) -> None:
    """Refuse a place in no folder, and one whose file would be lost: that is being read, or of another kind."""
    if output is None:
        return
    for path in filter(None, inputs):
        if output.resolve() == path.resolve():
            raise Usage(f"{output} is the file to be read, and would be lost; write elsewhere")
    if output.parent in DEVICES and not output.exists():
        raise BadInput(f"cannot write {output}: it would stand among devices; name a file elsewhere with -o")
    if not output.absolute().parent.is_dir():
        raise BadInput(f"cannot write {output}: the folder {output.parent} does not exist")
    if (head := _head(output)) and not kind.begins(head):
        found = next((other.called for other in FileKind if other.begins(head)), "something else")
        raise InTheWay(f"{output} is in the way: it is {found}, not {kind.called}, and would be lost; write elsewhere")


def _head(path: Path) -> bytes:
    """How the file begins; nothing where there is none that could be lost."""
    try:
        if path.is_dir():
            raise BadInput(f"cannot write {path}: it is a folder")
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}") from error
