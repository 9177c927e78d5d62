"""What long work says of how far it is. Whoever asked makes the events and reads them; whoever works only puts them in.

Invariant: the work never waits for the reader. Each event is read once, in the order in which it was said, and all of
them before the reading ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from queue import SimpleQueue
from typing import Generic, TypeVar

Event = TypeVar("Event")


class EventQueue(Generic[Event]):
    def __init__(self) -> None:
        self._said: SimpleQueue[tuple[Event] | None] = SimpleQueue()
        self._reading: Future[None] | None = None

    def say(self, event: Event) -> None:
        self._said.put((event,))

    def broken(self) -> bool:
        """Whether the reader failed, so that nobody wants the work any more."""
        return self._reading is not None and self._reading.done()

    @contextmanager
    def read_by(self, hear: Callable[[Event], object]) -> Iterator[None]:
        """`hear` is called with each event, in a thread of its own. What goes wrong there is raised at the end,
        whatever came of the work."""
        with ThreadPoolExecutor(1, "events") as thread:
            self._reading = thread.submit(copy_context().run, self._read, hear)
            try:
                yield
            finally:
                self._said.put(None)
                self._reading.result()

    def _read(self, hear: Callable[[Event], object]) -> None:
        while (said := self._said.get()) is not None:
            hear(*said)
