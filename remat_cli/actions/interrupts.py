"""Ctrl-C and SIGTERM as a question that solvers ask, so that the best plan so far is written before the end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Whether the user has had enough; a second signal is not caught."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked

    def hear(self, number: int, _: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def listening() -> Iterator[Interrupts]:
    interrupts = Interrupts()
    before = {number: signal.signal(number, interrupts.hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
