"""What the allocator gave out: a witness that knows nothing of plans."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile


def allocated(run: Callable[[], Any]) -> int:
    """The most bytes that the allocator gave out at once meanwhile, as torch's own profiler says. It sees the calling
    thread and autograd's: what a thread of gloo frees is counted for ever."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


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
