"""Tells a loop in C++ that time is up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from solvers.clock import Clock
from solvers.orders.arrays import Ints

_POLL = 0.05  # seconds


@contextmanager
def halting(clock: Clock | None) -> Iterator[Ints]:
    """An array of one number that becomes 1 when the clock interrupts the loop; the loop polls it."""
    flag, ended = np.zeros(1, np.int64), threading.Event()

    def watch(clock: Clock) -> None:
        while not ended.wait(_POLL):
            flag[0] |= clock.interrupts()

    if clock is not None:
        threading.Thread(target=watch, args=(clock,), daemon=True).start()
    try:
        yield flag
    finally:
        ended.set()
