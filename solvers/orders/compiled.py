"""How the hot loops are compiled: `entry` for what Python calls, `inner` for what only compiled code calls.

Invariant: what is compiled is kept on disk where that can be written, and else compiled again in each process; it runs
outside Python's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.clock import Clock


def _kept(**how: bool) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles, and keeps what is compiled if there is a place for it."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            found = njit(cache=True, **how)(function)
        except RuntimeError:  # neither beside the source nor in the user's cache may anything be written
            return njit(**how)(function)
        save = found._cache.save_overload

        def saved(*given: Any) -> None:
            with suppress(OSError):  # the disk is full
                save(*given)

        found._cache.save_overload = saved
        return found

    return compiled


entry = _kept(nogil=True)
inner = _kept(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
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
