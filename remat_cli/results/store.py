"""A folder of results, one file for each question, for any number of processes at once.

Invariant: an entry is written whole and at once, and read only if it is what was written. A damaged entry is ignored,
and the user hears of it once. A failure of the store never ends the work: a store that cannot be used only costs time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles.place import kept
from remat_cli.errors import RematError
from remat_cli.formats.files import write_whole

FORMAT = "remat-result/1"
SUFFIX = ".result.json"
PLACE = "REMAT_RESULTS"  # the environment variable that names another folder, or none at all
NOWHERE = ("", "off", "none")
ABANDONED_SECONDS = 3600.0  # a temporary file of this age has no writer any more


class Damaged(ValueError):
    """An entry is not what was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the store. `about`: the question, for people to read; `wrong`: why it cannot be used, if so."""

    path: Path
    bytes: int
    used: float  # when it was last written or read, in seconds since 1970
    about: Mapping[str, Any]
    wrong: str = ""


def folder() -> Path | None:
    """The folder of results: in the user's cache directory, or as the environment says; None where results are not
    kept."""
    said = os.environ.get(PLACE)
    if said is None:
        return kept("results")
    return None if said.strip().lower() in NOWHERE else Path(said)


def key_of(asked: Mapping[str, Any]) -> str:
    """The key of a question: a digest of all that its answer depends on, as JSON."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class Store:
    """`say` gets each message about a fault of the store, once."""

    def __init__(self, place: Path | None, say: Callable[[str], None] = lambda _: None) -> None:
        self.place = place
        self._say = say
        self._said: set[str] = set()

    def get(self, key: str) -> dict[str, Any] | None:
        """The content stored under the key, if it is whole."""
        if self.place is None:
            return None
        path = self._path(key)
        try:
            found = _read(path, key)[1]
            os.utime(path)
        except (FileNotFoundError, NotADirectoryError):  # of no folder `keep` tells, once
            return None
        except (OSError, Damaged) as error:
            self.complain(f"the kept result {path} is passed over: {error}")
            return None
        return found

    def keep(self, key: str, about: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Keep an answer under its key, in place of what is there. `about` is for people alone."""
        if self.place is None:
            return
        path = self._path(key)
        body = json.dumps(answer)
        head = {"format": FORMAT, "key": key, "sha256": hashlib.sha256(body.encode()).hexdigest(), "about": about}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, f"{json.dumps(head)}\n{body}\n")
        except OSError as error:
            self.complain(f"results are not kept: cannot make {path.parent}: {error.strerror}")
        except RematError as error:
            self.complain(f"this result is not kept: {error}")

    def complain(self, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            self._say(words)

    def entries(self, whole: bool = False) -> Iterator[Entry]:
        """Every entry, the most recently used first; `whole`: check all content too, not only the description."""
        found = [entry for path in self._files(SUFFIX) if (entry := _entry(path, whole)) is not None]
        yield from sorted(found, key=lambda entry: (-entry.used, entry.path.name))

    def leftovers(self, now: float) -> Iterator[Path]:
        """Temporary files whose writers died."""
        for path in self._files(".part"):
            if (state := _state(path)) is not None and now - state.st_mtime > ABANDONED_SECONDS:
                yield path

    def _files(self, suffix: str) -> Iterator[Path]:
        if self.place is not None and self.place.is_dir():
            yield from (path for path in self.place.glob("??/*") if path.name.endswith(suffix))

    def _path(self, key: str) -> Path:
        assert self.place is not None
        return self.place / key[:2] / f"{key}{SUFFIX}"


def too_many(
    entries: Iterable[Entry], current: Callable[[Entry], bool], older: float | None, most: int | None
) -> Iterator[Entry]:
    """The entries to delete: damaged, no longer `current`, not used for `older` seconds, or beyond `most` bytes in all.

    `entries` come in the order of use, the most recent first.
    """
    now, kept = time.time(), 0
    for entry in entries:
        kept += entry.bytes
        old = older is not None and now - entry.used > older
        if entry.wrong or not current(entry) or old or (most is not None and kept > most):
            kept -= entry.bytes
            yield entry


def _read(path: Path, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and body of an entry; Damaged if it is not what was written, under that key."""
    head_line, _, rest = path.read_bytes().partition(b"\n")
    head = _parse(head_line)
    body = rest.removesuffix(b"\n")
    if head.get("format") != FORMAT or head.get("key") != key:
        raise Damaged("it is damaged, or another's")
    if hashlib.sha256(body).hexdigest() != head.get("sha256"):
        raise Damaged("it is damaged")
    return head, _parse(body)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged("it is damaged") from error
    if not isinstance(found, dict):
        raise Damaged("it is damaged")
    return found


def _entry(path: Path, whole: bool) -> Entry | None:
    """The entry in the file; None where the file has gone in the meantime."""
    about: Any = {}
    wrong = ""
    try:
        if whole:
            about = _read(path, path.name.removesuffix(SUFFIX))[0].get("about")
        else:
            with path.open("rb") as file:
                about = _parse(file.readline()).get("about")
    except FileNotFoundError:
        return None
    except OSError as error:
        wrong = f"it cannot be read: {error.strerror}"
    except Damaged as error:
        wrong = str(error)
    state = _state(path)
    if state is None:
        return None
    return Entry(path, state.st_size, state.st_mtime, about if isinstance(about, dict) else {}, wrong)


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
