"""Threads of a program that are in a loop, or in a kernel, when Python ends: they wait for the end, which is near.

Invariant: the process ends as its main thread says, whatever its daemon threads are doing.
"""

from __future__ import annotations

import atexit
from functools import cache


@cache
def mind_late_threads() -> None:
    """Have daemon threads wait once Python is ending, where C++ would abort the process."""
    from solvers import _loops

    atexit.register(_loops.wait_when_late)
