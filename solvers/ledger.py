"""Who found what in a search, and what it took: each part's tries, work, processor seconds, and what it won.

Invariant: it only listens. Nothing that a search does depends on it, so seconds may stand in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from time import thread_time
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Part:
    """`seconds`: on processors; `won`: plans that were cheaper than all before; `raised`: bounds higher than before."""

    name: str
    tries: int = 0
    seconds: float = 0.0
    won: int = 0
    raised: int = 0


class Ledger:
    """The parts of one search, in the order in which they began."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._lock = Lock()  # parts run side by side
        self.found_by = ""  # the part whose plan is the best
        self.bound_by = ""  # the part whose bound is the highest

    def _part(self, name: str) -> Part:
        return self._parts.setdefault(name, Part(name))

    def won(self, by: str) -> None:
        with self._lock:
            self.found_by = by
            self._part(by).won += 1

    def raised(self, by: str) -> None:
        with self._lock:
            self.bound_by = by
            self._part(by).raised += 1

    def spent(self, by: str, seconds: float) -> None:
        """Of another thread, which the part waited for."""
        with self._lock:
            self._part(by).seconds += seconds

    @contextmanager
    def at_work(self, by: str) -> Iterator[None]:
        """One try of a part, in this thread."""
        begun = thread_time()
        try:
            yield
        finally:
            with self._lock:
                part = self._part(by)
                part.tries += 1
                part.seconds += thread_time() - begun

    def counted(self, by: str, call: Callable[[], Answer]) -> Callable[[], Answer]:
        """The call as a try of a part, in whatever thread."""

        def run() -> Answer:
            with self.at_work(by):
                return call()

        return run

    def include(self, parts: Iterable[Part]) -> None:
        """What a search within this one took."""
        for part in parts:
            with self._lock:
                own = self._part(part.name)
                own.tries, own.seconds = own.tries + part.tries, own.seconds + part.seconds

    def parts(self) -> tuple[Part, ...]:
        return tuple(replace(part) for part in self._parts.values())
