"""The cost and peak of an order, compiled: `lower` and `simulate` at a hundred thousand computes in some milliseconds.

Invariant: equal to lower + simulate on every legal order (held by test); an illegal order has the peak ILLEGAL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvers import _loops
from solvers.orders.arrays import Arrays, Ints

ILLEGAL = -1


def measure(arrays: Arrays, order: Ints | Sequence[int]) -> tuple[int, int]:
    """(cost, peak) of an order; an illegal one has no cost."""
    steps = np.asarray(order, dtype=np.int64)
    memory = memory_of(arrays, steps)
    if len(memory) != len(steps):
        return 0, ILLEGAL
    return int(arrays.cost[steps].sum()), int(memory.max(initial=arrays.resident))


def memory_of(arrays: Arrays, order: Ints) -> Ints:
    """Bytes in use during each compute; empty if the order is illegal."""
    return _loops.memory_of(arrays, order)


def trim(arrays: Arrays, order: Ints) -> Ints:
    """The order without computes that are not a node's first and whose results nobody needs; empty if it names what is
    no node."""
    return _loops.trim(arrays, order)
