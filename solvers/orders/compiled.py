"""How the hot loops are compiled: `entry` for what Python calls, `inner` for what only compiled code calls.

Invariant: entries are kept on disk after their first compilation, and run outside Python's lock.
"""

from __future__ import annotations

from numba import njit

entry = njit(cache=True, nogil=True)
inner = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
