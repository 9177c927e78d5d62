"""What this process holds, by the kernel's own count: a witness that knows nothing of the runtime's arena.

Invariant: `resident_peak` is the most since `resident_now` was last called, where the kernel can be told to begin anew.
"""

from __future__ import annotations

import gc
from pathlib import Path

from profiles.system import highest_memory

STATUS = Path("/proc/self/status")
AGAIN = Path("/proc/self/clear_refs")


def resident_now() -> int:
    """The bytes that are resident; the highest number there was is forgotten."""
    gc.collect()
    try:
        AGAIN.write_text("5")
        return _status("VmRSS")
    except OSError:
        return highest_memory()


def resident_peak() -> int:
    try:
        return _status("VmHWM")
    except OSError:
        return highest_memory()


def _status(name: str) -> int:
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return next(1024 * int(fields[1]) for fields in lines if fields and fields[0] == f"{name}:")
