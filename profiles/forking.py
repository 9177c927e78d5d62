"""Sessions in processes that fork: a child has the sessions of its parent, but none of the threads that serve them.

Invariant: a child never takes apart a session that it was born with, which would wait for those threads for ever.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any
from weakref import WeakSet

_made: WeakSet[Any] = WeakSet()


def kept_in_children(session: Any) -> Any:
    """The session, which no child of this process will take apart."""
    _made.add(session)
    return session


def _keep() -> None:
    for session in _made:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))  # a list of them would be taken apart at the child's end
    _made.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)
