"""The end of a command's time, or of its user's patience, kept whatever it is doing: reading, compiling, deep in one
linear program.

Solvers look at the clock; where nobody can look, this ends the process. What needs no search is answered before any
clock: until a search begins, time that is up ends nothing, unless reading takes very long. Invariant: it speaks at most
once, and never while the command says its own last words; files are whole either way, since each is written beside its
place first.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from remat_cli.interrupts import CODE
from remat_cli.planning.time_plan import ENDING_SHARE
from solvers.clock import Clock

GRACE_SHARE, LEAST_GRACE_SECONDS = 0.05, 0.5  # of the time limit, and seconds: what ends by itself is let to
STOPPED_GRACE_SECONDS = 5.0  # seconds, after an interrupt
POLL_SECONDS = 0.1  # seconds
READING_SECONDS = 60.0  # at most, beyond the limit, for an answer that needs no search


def leave_now(code: int) -> None:
    """End the process now, with what it has printed."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


class Deadline:
    """`last_words` says what is known by then and gives the exit code; `met` once the command speaks for itself, which
    the end of the `with` sees to where the command failed. `searching`: whether a search has begun from the start; else
    `search_begins` says when. The longer it took until then, the longer last words take, and the earlier they come.
    `look` is called again and again until then, for who wants to see how far the command has come."""

    def __init__(
        self,
        clock: Clock,
        last_words: Callable[[], int],
        leave: Callable[[int], object] = leave_now,
        searching: bool = True,
    ) -> None:
        self.clock = clock
        self._searching = threading.Event()
        if searching:
            self._searching.set()
        self._kept = 0.0  # seconds
        self.last_words = last_words
        self.look: Callable[[], object] = lambda: None
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

    def search_begins(self) -> None:
        """From here on the time limit ends the command: no answer was at hand."""
        self._kept = self._kept or ENDING_SHARE * self.clock.elapsed()
        self._searching.set()

    def _watch(self) -> None:
        while not self._is_up():
            if self._over.wait(POLL_SECONDS) or not self._speaking.acquire(blocking=False):
                return
            try:
                self.look()
            finally:
                self._speaking.release()
        stopped = self.clock.stopped()
        grace = STOPPED_GRACE_SECONDS if stopped else max(LEAST_GRACE_SECONDS, GRACE_SHARE * self.clock.seconds)
        if not self._over.wait(grace) and self._speaking.acquire(blocking=False):
            code = self.last_words()
            self._leave(CODE if stopped else code)

    def _is_up(self) -> bool:
        clock, waits = self.clock, not self._searching.is_set()
        late = clock.elapsed() - (clock.seconds - self._kept)
        over = late >= 0 or clock.over()
        return clock.stopped() or (over and not (waits and late < READING_SECONDS))
