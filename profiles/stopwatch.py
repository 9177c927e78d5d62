"""How long a run takes by itself, on a machine whose processors others use too.

Invariant: where the thread that runs does all the work, no time counts in which it waited for a processor; where
several threads share the work, that cannot be told from the clock, and what they waited is told beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from profiles.device import Device

TASKS = Path("/proc/self/task")


def works_alone(device: Device) -> bool:
    """Whether the thread that starts a run there does all of its work."""
    return device.kind == "cpu" and device.threads == 1


def lap(once: Callable[[], object], alone: bool) -> int:
    """ns of one run. `alone`: this thread does all of its work.

    Neither clock reads less than the work takes: the wall's has what others took of the processor in it, the thread's
    own a system call.
    """
    if not alone:
        begin = time.perf_counter_ns()
        once()
        return time.perf_counter_ns() - begin
    used, begin = time.thread_time_ns(), time.perf_counter_ns()
    once()
    took = time.perf_counter_ns() - begin
    return min(took, time.thread_time_ns() - used)


class Waiting:
    """What share of the time since then this process's threads were ready to run, and had to wait for a processor."""

    def __init__(self) -> None:
        self._since = _spent()

    def share(self) -> float:
        ran = waited = 0
        for thread, (running, waiting) in _spent().items():
            before = self._since.get(thread, (0, 0))
            ran += running - before[0]
            waited += waiting - before[1]
        return round(waited / max(1, ran + waited), 3)


def _spent() -> dict[str, tuple[int, int]]:
    """ns that each thread has run and waited so far; nothing where the system does not tell."""
    found = {}
    for task in TASKS.glob("*/schedstat"):
        try:
            running, waiting, *_ = task.read_text().split()
        except (OSError, ValueError):  # it has ended
            continue
        found[task.parent.name] = (int(running), int(waiting))
    return found
