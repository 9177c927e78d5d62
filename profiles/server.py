"""The process that benches are forked from: it imports the runtime once, and each child starts fresh.

Invariant: importing this imports nothing heavy, so that the server can begin while whoever wants a bench still imports.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from types import ModuleType

PRELOADED = ["onnxruntime", "profiles.bench"]


def server() -> ForkServerContext:
    """The context of its children; the server is started if it does not run yet."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with without_script():
        forkserver.ensure_running()
    return context


@contextmanager
def without_script() -> Iterator[None]:
    """Keep a child from running the user's script again: it needs no definition from there."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
