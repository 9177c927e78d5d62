"""The block of `pattern` for the search over orders: the requests of an order above the room of later runs.

Invariant: nothing lies above it exactly where `pattern.held_later` of the order's plan is within the room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvers._loops import above, held_later
from solvers.orders.arrays import arrays_of
from solvers.problem import Problem


def above_of(problem: Problem, order: Sequence[int], room: int) -> int:
    """The bytes by which requests lie above the room, summed; -1 for an illegal order."""
    return above(arrays_of(problem), np.asarray(order, np.int64), room)


def height_of(problem: Problem, order: Sequence[int]) -> int:
    """The bytes that later runs hold of an order; -1 for an illegal one."""
    return held_later(arrays_of(problem), np.asarray(order, np.int64))
