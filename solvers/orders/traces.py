"""The cheapest way back from what is read to what it was made from.

A trace goes from a value to one that its node reads, and so on, and ends at the node that made its last. It costs what
each of its values does, and what that node does.

Invariant: of all traces from a value the cheapest is found; of equals, the shorter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers._loops import follow_traces
from solvers.orders.arrays import Arrays, Ints

Floats = NDArray[np.float64]
_END = -1

# of rows that a linear program's answer breaks, each of which says what a trace costs at least
ROUNDS = 60
STALLED = 3  # rounds without a real gain, after which no more are sought
MOST, FROM_PAIR = 300, 60  # rows found in a round, and for one pair of groups
BROKEN = 0.02  # by how much, at least


class Traces(NamedTuple):
    least: Floats  # value -> the cost of its cheapest trace
    after: Ints  # value -> the value that follows it in that trace, or -1
    read: Ints  # node -> the value among its reads whose trace costs least, or -1
    cost: Floats  # node -> the cost of that trace; infinite if there is none

    def path(self, value: int) -> list[int]:
        found = [value]
        while self.after[found[-1]] != _END:
            found.append(int(self.after[found[-1]]))
        return found


def cheapest(arrays: Arrays, free: NDArray[np.bool_], held: Floats, made: Floats) -> Traces:
    """`held`: of each value; `made`: of each node; `free`: values that no trace goes to."""
    least, after = held.astype(np.float64), np.full(len(held), _END, np.int64)
    read = np.full(len(made), _END, np.int64)
    cost = np.full(len(made), np.inf)
    follow_traces(arrays, free, made, least, after, read, cost)
    return Traces(least, after, read, cost)
