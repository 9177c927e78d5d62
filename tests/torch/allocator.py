"""What the allocator gave out: a witness that knows nothing of plans."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remat_cli.torch import allocations


def allocated(run: Callable[[], Any]) -> int:
    """The most bytes at once of what the allocator gave out meanwhile."""
    return allocations.allocated(run)[0]


def counting(folder: Path) -> str:
    """The library that counts in all threads of a process that has it in LD_PRELOAD."""
    made = folder / "allocator.so"
    given = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(made), str(given), "-ldl", "-pthread"], check=True)
    return str(made)


def allocated_in_all_threads(run: Callable[[], Any]) -> int:
    """The most bytes that the allocator gave out at once meanwhile, in a process that counts them."""
    library = ctypes.CDLL(None)
    library.remat_bytes.restype = library.remat_most.restype = ctypes.c_long
    library.remat_begin()
    held = library.remat_bytes()
    run()
    return int(library.remat_most() - held)
