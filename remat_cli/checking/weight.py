"""The memory of this process, by the kernel's count: a witness independent of the runtime's arena.

Invariant: `resident_peak` is the peak since `resident_now` was last called, where the kernel can reset it.
"""

from __future__ import annotations

import gc
from pathlib import Path

from profiles.system import highest_memory

STATUS = Path("/proc/self/status")
MAPPINGS = Path("/proc/self/smaps")
AGAIN = Path("/proc/self/clear_refs")


def resident_now() -> int:
    """The resident bytes now; the peak so far is reset."""
    gc.collect()
    try:
        AGAIN.write_text("5")
        return _status("VmRSS")
    except OSError:
        return highest_memory()


def resident() -> int:
    """The resident bytes now; the peak stays."""
    try:
        return _status("VmRSS")
    except OSError:
        return highest_memory()


def resident_peak() -> int:
    try:
        return _status("VmHWM")
    except OSError:
        return highest_memory()


def mapped_now() -> int:
    """Resident bytes of mapped files of data, such as the weights that a session maps. Files that code is mapped from
    do not count: what a run brings in of them is what the process takes for it."""
    held: dict[str, int] = {}
    code: set[str] = set()
    name = ""
    try:
        lines = MAPPINGS.read_text().splitlines()
    except OSError:
        return 0
    for fields in (line.split(maxsplit=5) for line in lines):
        if not fields[0].endswith(":"):  # addresses, access, offset, device, number, and a path where there is one
            name = fields[5] if len(fields) > 5 and fields[5].startswith("/") else ""
            if "x" in fields[1]:
                code.add(name)
        elif fields[0] == "Rss:" and name:
            held[name] = held.get(name, 0) + 1024 * int(fields[1])
    return sum(held[name] for name in held.keys() - code)


def _status(name: str) -> int:
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return next(1024 * int(fields[1]) for fields in lines if fields and fields[0] == f"{name}:")
