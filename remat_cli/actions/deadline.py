"""The end of a command's time, or of its user's patience, kept whatever it is doing: reading, compiling, deep in one
linear program.

Solvers look at the clock; where nobody can look, this ends the process. Invariant: it speaks at most once, and never
while the command says its own last words; files are whole either way, since each is written beside its place first.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from remat_cli.interrupts import CODE
from solvers.clock import Clock

GRACE_SHARE, LEAST_GRACE_SECONDS = 0.05, 0.5  # of the time limit, and seconds: what ends by itself is let to
STOPPED_GRACE_SECONDS = 5.0  # seconds, after an interrupt
POLL_SECONDS = 0.1  # seconds


def leave_now(code: int) -> None:
    """End the process now, with what it has printed."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


class Deadline:
    """`last_words` says what is known by then and gives the exit code; `met` once the command speaks for itself, which
    the end of the `with` sees to where the command failed."""

    def __init__(self, clock: Clock, last_words: Callable[[], int], leave: Callable[[int], object] = leave_now) -> None:
        self.clock = clock
        self.last_words = last_words
        self._leave = leave
        self._speaking = threading.Lock()
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self) -> Deadline:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.met()

    def met(self) -> None:
        """From here on the command ends by itself; waits for good if time is up and last words are being said."""
        if not self._over.is_set():
            self._speaking.acquire()
            self._over.set()

    def _watch(self) -> None:
        while not self.clock.over():
            if self._over.wait(min(POLL_SECONDS, self.clock.left())):
                return
        stopped = self.clock.stopped()
        grace = STOPPED_GRACE_SECONDS if stopped else max(LEAST_GRACE_SECONDS, GRACE_SHARE * self.clock.seconds)
        if not self._over.wait(grace) and self._speaking.acquire(blocking=False):
            code = self.last_words()
            self._leave(CODE if stopped else code)
