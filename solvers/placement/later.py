"""The block of `pattern` for the search over orders: the requests of an order above the room of later runs.

Invariant: nothing lies above it exactly where `pattern.held_later` of the order's plan is within the room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvers._loops import above
from solvers.orders.arrays import arrays_of
from solvers.problem import Problem


def above_of(problem: Problem, order: Sequence[int], room: int) -> int:
    """The bytes by which requests lie above the room, summed; -1 for an illegal order."""
    return above(arrays_of(problem), np.asarray(order, np.int64), room)
