"""Calls that run at the same time, as many as there are processors, where none needs what another finds.

They gain where most of their time is in compiled loops, which run without Python's lock.

Invariant: answers come in the order of the calls, so the number of processors decides how long it takes, never what is
found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


def processors() -> int:
    """As many as this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """What the calls give. Where something else is at work beside them, the system shares the processors out: none
    idles, whoever ends first."""
    many = min(len(calls), processors())
    if many <= 1:
        return [call() for call in calls]
    with ThreadPoolExecutor(many) as threads:
        return list(threads.map(lambda call: call(), calls))
