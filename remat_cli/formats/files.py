"""Files that are written whole or not at all, and read within limits.

Invariant: a regular destination either has its old content or all of the new one, whatever kills us in between; what is
no regular file (a device, a pipe) is written through and never replaced. Only regular files are read whole or hashed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from remat_cli.errors import BadInput


def stem_of(path: Path) -> str:
    """What files about one model share: `m` of `m.onnx`, `m.problem.json`, `m.plan.json` and the like."""
    name = path.name.removesuffix(".json")
    for kind in (".plan", ".problem", ".chain", ".joint", ".onnx"):
        name = name.removesuffix(kind)
    return name


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
