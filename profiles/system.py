"""What the operating system reports about the machine and this process: all of it on Linux, less on macOS and Windows.

Invariant: a count that a system does not keep is 0, so that differences of it say nothing.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_UNIT = 1 if sys.platform == "darwin" else 1024  # the unit of the highest memory, in bytes


def processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def busy_threads() -> float:
    """How many threads ran or waited for a processor in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def fresh_pages() -> int:
    """How many pages of memory this process has touched for the first time so far."""
    return int(_used("ru_minflt"))


def interruptions() -> int:
    """How often so far the system took a processor from one of our threads."""
    return int(_used("ru_nivcsw"))


def highest_memory() -> int:
    """The most bytes that were resident so far."""
    return int(_used("ru_maxrss")) * _UNIT


def told_of(process: int | str, name: str) -> int:
    """Bytes that Linux tells of a process under that name, such as VmRSS. Raises OSError where there is nothing."""
    lines = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    for fields in lines:
        if fields and fields[0] == f"{name}:":
            return 1024 * int(fields[1])
    raise OSError(f"nothing is told of {name}")


def _used(name: str) -> Any:
    return 0 if resource is None else getattr(resource.getrusage(resource.RUSAGE_SELF), name)


def let_go() -> None:
    """Give back what was freed while a session or its places were made, where that is the C library's to do."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
