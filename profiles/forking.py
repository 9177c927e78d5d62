"""Processes that fork: a child has the sessions of its parent and the runtime's own objects, but none of their threads.

Invariant: a child never takes apart what it was born with, which would wait for those threads for ever. So it leaves
the process without the runtime's own end, with the same exit code and with all that C had left to write.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from functools import cache
from typing import Any
from weakref import WeakSet

RUNS = "run", "run_async", "run_with_iobinding", "run_with_ort_values", "run_with_ortvaluevector"
BORN_BEFORE = "was made before the process forked, and its threads are the parent's: make it anew"
_made: WeakSet[Any] = WeakSet()


class ThreadsLeftBehind(RuntimeError):
    """A run in a child would wait for ever for threads that only its parent has."""


def kept_in_children(session: Any) -> Any:
    """The session, which no child of this process will take apart."""
    mind_forks()
    _made.add(session)
    return session


@cache
def mind_forks() -> None:
    """Have each child, from now on, keep what it was born with. For processes in which the runtime is loaded."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=keep)


def _refuse(*_: Any, **__: Any) -> None:
    raise ThreadsLeftBehind(f"this session {BORN_BEFORE}")


def keep() -> None:
    """In a child: keep what it was born with, and leave the process without the runtime's own end."""
    for session in _made:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))  # a list of them would be taken apart at the child's end
        if session.get_session_options().intra_op_num_threads != 1:
            for name in RUNS:
                setattr(session, name, _refuse)
    _made.clear()
    _keep_others()
    atexit.register(_keep_others)  # with those that came since
    system = ctypes.CDLL(None)
    if hasattr(system, "on_exit"):  # glibc's; the last that is registered runs first, and before the runtime's end
        system.on_exit(system._exit, None)
        system.on_exit(system.fcloseall, None)


def _keep_others() -> None:
    """Sessions that the user made by the runtime itself are not taken apart either, when they are dropped, when cycles
    are collected or at the end: without remat the runtime hangs there, or the process is aborted.
    """
    kinds = getattr(sys.modules.get("onnxruntime"), "InferenceSession", ())
    if not kinds:
        return
    for session in [one for one in gc.get_objects() if issubclass(type(one), kinds)]:  # isinstance would ask proxies
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))
