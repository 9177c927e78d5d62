"""What a process that was started for one piece of work is bound by: it does not outlive who started it.

Invariant: on Linux the kernel sees to it, however the parent ends; elsewhere a child ends with its work.
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def bind_to(parent: int) -> None:
    """End when the process `parent` does, which started this one; now, if it has ended already."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
