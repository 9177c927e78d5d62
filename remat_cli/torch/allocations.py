"""What torch's CPU allocator gives out while something runs, by torch's own profiler.

Invariant: what is freed counts as freed only if it was given out meanwhile. The profiler knows a block by its place
alone, so it takes one from before for one that an earlier profile saw there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from torch.profiler import ProfilerActivity, profile

NO_TRACE_LINES = "6"  # a level without the two lines that torch's profiler prints at each start


def allocated(run: Callable[[], object]) -> tuple[int, int]:
    """The most bytes at once of what was given out, and those that are left at the end.

    The calling thread and autograd's are seen: what another thread frees counts until its place is given out again.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", NO_TRACE_LINES)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    given: dict[int, int] = {}
    now = most = 0
    events = _of_memory(seen.profiler.kineto_results.experimental_event_tree())
    for event in sorted(events, key=lambda event: int(event.start_time_ns)):
        place, size = event.extra_fields.ptr, event.extra_fields.alloc_size
        now -= given.pop(place, 0)
        if size > 0:
            given[place] = size
            now += size
        most = max(most, now)
    return most, now


def _of_memory(events: list[Any]) -> Iterator[Any]:
    for event in events:
        if event.name == "[memory]":
            yield event
        yield from _of_memory(event.children)
