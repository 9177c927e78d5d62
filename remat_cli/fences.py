"""What a process that was started for one piece of work is bound by: it finds the remat that started it, and does not
outlive that.

Invariant: on Linux the kernel sees to it, however the parent ends; elsewhere a child ends with its work.
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def own_environment() -> dict[str, str]:
    """The environment for a process of ours: it imports the same remat, wherever that lies."""
    paths = [ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def bind_to(parent: int) -> None:
    """End when the process `parent` does, which started this one; now, if it has ended already."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
