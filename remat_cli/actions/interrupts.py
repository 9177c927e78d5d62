"""Ctrl-C and SIGTERM as a question that solvers ask, so that the best plan so far is written before the end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from remat_cli.errors import RematError
from remat_cli.interrupts import CODE, SIGNALS


class Interrupts:
    """Whether the user has had enough."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked

    def hear(self, _: int, __: FrameType | None) -> None:
        self.asked = True

    def listen(self, line: int) -> None:
        """Hear of signals, by their numbers, until the line closes: also while the main thread is in compiled code.

        The second ends the process: what is kept is what was written by then.
        """
        heard = 0
        while number := os.read(line, 1):
            heard += number[0] in SIGNALS
            self.asked = self.asked or heard > 0
            if heard > 1:
                os._exit(CODE)
        os.close(line)


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Signals are asked about, not raised; if there was one, KeyboardInterrupt at the end, whatever else went wrong."""
    interrupts = Interrupts()
    line, ours = os.pipe()
    os.set_blocking(ours, False)
    before = {number: signal.signal(number, interrupts.hear) for number in SIGNALS}
    waking = signal.set_wakeup_fd(ours, warn_on_full_buffer=False)
    threading.Thread(target=interrupts.listen, args=(line,), daemon=True).start()
    try:
        yield interrupts
    except RematError:
        if not interrupts.asked:
            raise
    finally:
        signal.set_wakeup_fd(waking)
        os.close(ours)
        for number, handler in before.items():
            signal.signal(number, handler)
    if interrupts.asked:
        raise KeyboardInterrupt
