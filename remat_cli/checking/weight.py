"""The memory of this process, by the kernel's count: a witness independent of the runtime's arena.

Invariant: `resident_peak` is the peak since `resident_now` was last called, where the kernel can reset it.
"""

from __future__ import annotations

import gc
from pathlib import Path

from profiles.system import highest_memory

STATUS = Path("/proc/self/status")
AGAIN = Path("/proc/self/clear_refs")


def resident_now() -> int:
    """The resident bytes now; the peak so far is reset."""
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


def mapped_now() -> int:
    """Resident bytes of files: of code, and of weights that a session maps. The system may take them back."""
    try:
        return _status("RssFile")
    except (OSError, StopIteration):
        return 0


def _status(name: str) -> int:
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return next(1024 * int(fields[1]) for fields in lines if fields and fields[0] == f"{name}:")
