"""How the hot loops are compiled: `entry` for what Python calls, `inner` for what only compiled code calls.

Invariant: entries are kept on disk after their first compilation, and run outside Python's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.clock import Clock

entry = njit(cache=True, nogil=True)
inner = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
_POLL = 0.05  # seconds


@contextmanager
def halting(clock: Clock | None) -> Iterator[NDArray[np.int64]]:
    """One number that becomes 1 when the clock is over, for compiled code to look at as it goes."""
    flag, ended = np.zeros(1, np.int64), threading.Event()

    def watch(clock: Clock) -> None:
        while not ended.wait(_POLL):
            flag[0] |= clock.over()

    if clock is not None:
        threading.Thread(target=watch, args=(clock,), daemon=True).start()
    try:
        yield flag
    finally:
        ended.set()
