"""How the hot loops are compiled: `entry` for what Python calls, `inner` for what only compiled code calls.

Invariant: what is compiled is kept on disk where that can be written, and else compiled again in each process. It is
taken from there only if neither its module nor any module of ours that this imports has changed since: numba looks at
the function's own file alone, and what it had compiled for another layout of an array would write anywhere. It runs
outside Python's lock. While it is compiled, clocks stand still.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core import event
from numpy.typing import NDArray

from solvers.clock import STANDSTILL, Clock

# of what numba compiles, not of what it takes from the disk
_HEARS = {"on_start": lambda *_: STANDSTILL.begin(), "on_end": lambda *_: STANDSTILL.end()}
event.register("numba:compile", type("Compiling", (event.Listener,), _HEARS)())


@cache
def _text(module: str) -> str:
    found = find_spec(module)
    return Path(found.origin).read_text() if found and found.origin else ""


@cache
def _sources(module: str) -> str:
    """A hash of a module and all that it imports from its own package and from this one, and these in turn."""
    packages = "|".join({module.split(".")[0], __name__.split(".")[0]})
    names, known = [module], {module}
    for name in names:
        new = set(re.findall(rf"^from ((?:{packages})\.[\w.]+) import", _text(name), re.MULTILINE)) - known
        known |= new
        names += sorted(new)
    return hashlib.sha256("\0".join(_text(name) for name in names).encode()).hexdigest()


def _kept(**how: bool) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles, and keeps what is compiled if there is a place for it."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            found = njit(cache=True, **how)(function)
        except RuntimeError:  # neither beside the source nor in the user's cache may anything be written
            return njit(**how)(function)
        files, stamp = found._cache._cache_file, _sources(function.__module__)
        files._source_stamp = stamp
        # numba writes the index before the data: killed between, it must not lead to data of other sources
        files._data_name_pattern = files._data_name_pattern.replace(".{number", f".{stamp[:12]}.{{number")
        save = found._cache.save_overload

        def saved(*given: Any) -> None:
            with suppress(OSError):  # the disk is full
                save(*given)

        found._cache.save_overload = saved
        return found

    return compiled


entry = _kept(nogil=True)
inner = _kept(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
_POLL = 0.05  # seconds


@contextmanager
def halting(clock: Clock | None) -> Iterator[NDArray[np.int64]]:
    """One number that becomes 1 when the clock is over, for compiled code to look at as it goes."""
    flag, ended = np.zeros(1, np.int64), threading.Event()

    def watch(clock: Clock) -> None:
        while not ended.wait(_POLL):
            flag[0] |= clock.over()

    if clock is not None:
        threading.Thread(target=watch, args=(clock,), daemon=True).start()
    try:
        yield flag
    finally:
        ended.set()
