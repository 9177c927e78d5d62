"""The time of a run by itself, on a machine whose processors others use too.

Invariant: where the calling thread does all the work, its waiting for a processor does not count. Where several threads
share the work, the clock cannot tell, and their waiting is given beside the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from profiles.device import Device

TASKS = Path("/proc/self/task")


def works_alone(device: Device) -> bool:
    """Whether the calling thread does all of the work of a run there."""
    return device.kind == "cpu" and device.threads == 1


def lap(once: Callable[[], object], alone: bool) -> int:
    """ns of one run. `alone`: the calling thread does all of its work.

    Both clocks read at least the time of the work: the wall's includes interruptions by others, the thread's own
    includes a system call.
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
    """The share of the time since then that this process's threads were ready to run but waited for a processor."""

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
    """ns that each thread has run and waited so far; empty where the system does not tell."""
    found = {}
    for task in TASKS.glob("*/schedstat"):
        try:
            running, waiting, *_ = task.read_text().split()
        except (OSError, ValueError):  # the thread has ended
            continue
        found[task.parent.name] = (int(running), int(waiting))
    return found
