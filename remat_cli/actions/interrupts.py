"""Ctrl-C and SIGTERM as a question that solvers ask, so that the best plan so far is written before the end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

from remat_cli.errors import Interrupted, RematError
from remat_cli.interrupts import CODE, SIGNALS, importing

Handler: TypeAlias = Callable[[int, FrameType | None], None]


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
    """Signals are asked about, not raised; if there was one, KeyboardInterrupt at the end, whatever else went wrong."""
    interrupts = Interrupts()
    try:
        with _heard(interrupts, SIGNALS, interrupts.hear, 1):
            yield interrupts
    except RematError:
        if not interrupts.asked:
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
