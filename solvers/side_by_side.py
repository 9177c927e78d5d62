"""Threads for calls that run at the same time, as many as there are processors.

They gain where most of the time is in compiled loops, which run without Python's lock. Whatever is at work takes one of
them, so that none idles while calls wait, and none waits for a processor.

Invariant: answers come in the order of the calls, so the number of processors decides how long it takes, never what is
found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


def processors() -> int:
    """As many as this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SearchThreads(ThreadPoolExecutor):
    """They end when the block does that they are used in."""

    def __init__(self) -> None:
        super().__init__(processors())

    def begin(self, call: Callable[[], Answer]) -> Future[Answer]:
        return self.submit(call)

    def side_by_side(self, calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
        """What the calls give, when all have ended."""
        return list(self.map(lambda call: call(), calls))
