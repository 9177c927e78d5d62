"""Files that are written whole or not at all, and read within limits; and the kinds of those that users name.

Invariant: a regular destination either has its old content or all of the new one, whatever kills us in between; what is
no regular file (a device, a pipe) is written through and never replaced. Only regular files are read whole or hashed.
A file is written over only by one of its own kind, which its first bytes show, and never where it is being read.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import IO

from remat_cli.errors import BadInput, InTheWay, Usage

HEAD_BYTES = 4096


def write_whole(path: Path, content: bytes | str) -> None:
    """Write through a temporary file beside the destination, synced and then renamed over it."""
    try:
        data = content.encode() if isinstance(content, str) else content
        special = path.exists() and not path.is_file() and not path.is_dir()
    except ValueError as error:
        raise BadInput(f"cannot write {str(path)!r}: it, or a name that goes into it, is not text") from error
    if special:
        return _write_through(path, data)
    with _beside(path) as (file, _):
        file.write(data)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that nobody else who asks for it works there meanwhile, where the system has
    locks."""
    place = None
    with suppress(ImportError, OSError):  # some systems, and file systems of networks, have no such locks
        import fcntl

        place = os.open(folder, os.O_RDONLY)
        fcntl.flock(place, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if place is not None:
            os.close(place)


def copy_whole(source: Path, path: Path) -> None:
    """Copy a file, however large, by the system's own means."""
    with _beside(path) as (_, name):
        shutil.copyfile(source, name)


@contextmanager
def _beside(path: Path) -> Iterator[tuple[IO[bytes], str]]:
    """A new temporary file beside the destination, with its name; it is synced and renamed over it if all went well."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent or Path(), prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, name
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}; the old file, if any, is untouched") from error
    finally:
        Path(name).unlink(missing_ok=True)


def _write_through(path: Path, data: bytes) -> None:
    try:
        with path.open("wb", buffering=0) as file:
            while data:
                data = data[file.write(data) :]
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from error


def sha256(path: Path) -> str:
    """The SHA-256 of a regular file's content, in hexadecimal."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path} is not a regular file; only those have a content that stays")
    except ValueError as error:
        raise BadInput(f"cannot read {str(path)!r}: no file can be called that") from error
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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


def check_place(output: Path | None, kind: FileKind, *inputs: Path) -> None:
    """Refuse a place whose file would be lost: one that is being read, or that is of another kind."""
    if output is None:
        return
    for path in inputs:
        if output.resolve() == path.resolve():
            raise Usage(f"{output} is the file to be read, and would be lost; write elsewhere")
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
