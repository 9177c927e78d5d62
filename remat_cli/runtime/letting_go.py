"""Memory that was freed in this process, given back to the system."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress


def let_go() -> None:
    """Give back what was freed while a session or its places were made, where that is the C library's to do."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
