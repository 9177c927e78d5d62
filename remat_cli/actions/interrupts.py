"""Ctrl-C and SIGTERM as a question that solvers ask, so that the best plan so far is written before the end; and the
end of a command's time, kept whatever it is doing: reading, compiling, deep in one linear program.

Solvers look at the clock; where nobody can look, a `Deadline` ends the process. What needs no search is answered before
any clock: until a search begins, time that is up ends nothing, unless reading takes very long. Invariant: it speaks at
most once, and never while the command says its own last words; files are whole either way, since each is written beside
its place first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TypeAlias

from remat_cli.errors import Interrupted, RematError
from remat_cli.interrupts import CODE, SIGNALS, importing
from remat_cli.planning.time_plan import ENDING_SHARE
from solvers.clock import Clock

Words: TypeAlias = Callable[[bool], RematError | None]
Handler: TypeAlias = Callable[[int, FrameType | None], None]
GRACE_SHARE, LEAST_GRACE_SECONDS = 0.05, 0.5  # of the time limit, and seconds: what ends by itself is let to
STOPPED_GRACE_SECONDS = 5.0  # seconds, after an interrupt
POLL_SECONDS = 0.1  # seconds
READING_SECONDS = 60.0  # at most, beyond the limit, for an answer that needs no search


class Halted(RematError):
    """Whoever asked had enough: what was known by then has been said."""

    code = 130
    kind = "interrupted"

    def __init__(self, says: str = "interrupted") -> None:
        super().__init__(says)


class Interrupts:
    """Whether the user has had enough."""

    def __init__(self) -> None:
        self.asked = False
        self.pressed = 0

    def __call__(self) -> bool:
        return self.asked

    def hear(self, _: int, __: FrameType | None) -> None:
        self.asked = True

    def raise_the_second(self, _: int, frame: FrameType | None) -> None:
        """The first is asked about; whoever asks again does not want to wait, but for an import that is under way."""
        self.pressed += 1
        self.asked = True
        if self.pressed > 1 and not importing(frame):
            raise KeyboardInterrupt

    def listen(self, line: int, most: int) -> None:
        """Hear of signals, by their numbers, until the line closes: also while the main thread is in compiled code.

        One more than `most` ends the process: what is kept is what was written by then.
        """
        heard = 0
        while number := os.read(line, 1):
            heard += number[0] in SIGNALS
            self.asked = self.asked or heard > 0
            if heard > most:
                os._exit(CODE)
        os.close(line)


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Signals are asked about, not raised; if there was one, Halted or KeyboardInterrupt at the end, whatever else went
    wrong."""
    interrupts = Interrupts()
    try:
        with _heard(interrupts, SIGNALS, interrupts.hear, 1):
            yield interrupts
    except RematError as error:
        if not interrupts.asked or isinstance(error, Halted):
            raise
    if interrupts.asked:
        raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[Interrupts]:
    """The same of Ctrl-C in somebody's program, where that has no handler of its own: only asked about, until the
    second. What comes of it is for the caller to say."""
    interrupts, main = Interrupts(), threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interrupts
        return
    try:
        with _heard(interrupts, (signal.SIGINT,), interrupts.raise_the_second, sys.maxsize):
            yield interrupts
    except KeyboardInterrupt as error:
        raise Interrupted from error


@contextmanager
def _heard(interrupts: Interrupts, numbers: Sequence[int], hear: Handler, most: int) -> Iterator[None]:
    """Signals are heard by this handler, and by a thread as soon as they come."""
    line, ours = os.pipe()
    os.set_blocking(ours, False)
    before = {number: signal.signal(number, hear) for number in numbers}
    waking = signal.set_wakeup_fd(ours, warn_on_full_buffer=False)
    threading.Thread(target=interrupts.listen, args=(line, most), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(waking)
        os.close(ours)
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_now(code: int) -> None:
    """End the process now, with what it has printed."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


class Deadline:
    """`last_words` is told whether the user ended the command, says what is known by then, and gives the error that it
    ends in, if in one. `answer` lets the command speak for itself; `met` once it is about to, which the end of the
    `with` sees to where it failed. `searching`: whether a search has begun from the start; else `search_begins` says
    when. The longer it took until then, the longer last words take, and the earlier they come. `look` is called again
    and again until then, for who wants to see how far the command has come."""

    def __init__(
        self,
        clock: Clock,
        last_words: Words,
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

    def answer(self, words: Words) -> None:
        """The command's own words, said in time; raises the error that they end in."""
        self.met()
        if (error := words(self.clock.stopped())) is not None:
            raise error

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
            error = self.last_words(stopped)
            self._leave(CODE if stopped else 0 if error is None else error.code)

    def _is_up(self) -> bool:
        clock, waits = self.clock, not self._searching.is_set()
        late = clock.elapsed() - (clock.seconds - self._kept)
        over = late >= 0 or clock.over()
        return clock.stopped() or (over and not (waits and late < READING_SECONDS))
