"""Imports of compiled modules, which no exception may break off: Ctrl-C in somebody's program waits for their end.

Invariant: a program has its KeyboardInterrupt as soon as the import is done, and a handler of its own is let be.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def whole() -> Iterator[None]:
    """A context around imports."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if heard:
            raise KeyboardInterrupt
