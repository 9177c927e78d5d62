"""What the allocator gave out: a witness that knows nothing of plans."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile


def allocated(run: Callable[[], Any]) -> int:
    """The most bytes at once of what the allocator gave out meanwhile, as torch's own profiler says.

    It sees the calling thread and autograd's: what a thread of gloo frees counts until its place is given out again.
    What is freed counts as freed only if it was given out meanwhile: the profiler knows a block by its place alone, and
    takes one from before for one that an earlier profile saw there.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    given: dict[int, int] = {}
    now = most = 0
    events = _of_memory(seen.profiler.kineto_results.experimental_event_tree())
    for event in sorted(events, key=lambda event: event.start_time_ns):
        place, size = event.extra_fields.ptr, event.extra_fields.alloc_size
        now -= given.pop(place, 0)
        if size > 0:
            given[place] = size
            now += size
        most = max(most, now)
    return most


def _of_memory(events: list[Any]) -> Iterator[Any]:
    for event in events:
        if event.tag == _EventType.Allocation:
            yield event
        yield from _of_memory(event.children)


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
