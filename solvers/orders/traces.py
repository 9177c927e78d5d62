"""The cheapest way back from what is read to what it was made from.

A trace goes from a value to one that its node reads, and so on, and ends at the node that made its last. It costs what
each of its values does, and what that node does.

Invariant: of all traces from a value the cheapest is found; of equals, the shorter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.orders.arrays import Arrays, Ints
from solvers.orders.compiled import entry

Floats = NDArray[np.float64]
_END = -1


class Traces(NamedTuple):
    least: Floats  # for each value, what its cheapest trace costs
    after: Ints  # for each value, the one that follows in it, or -1
    read: Ints  # for each node, the value among those it reads whose trace costs least, or -1
    cost: Floats  # of that trace; infinite if there is none

    def path(self, value: int) -> list[int]:
        found = [value]
        while self.after[found[-1]] != _END:
            found.append(int(self.after[found[-1]]))
        return found


def cheapest(arrays: Arrays, free: NDArray[np.bool_], held: Floats, made: Floats) -> Traces:
    """`held`: of each value; `made`: of each node; `free`: values that no trace goes to."""
    least, after = held.copy(), np.full(len(held), _END, np.int64)
    read = np.full(len(made), _END, np.int64)
    cost = np.full(len(made), np.inf)
    _follow(arrays.reads_at, arrays.reads, arrays.writes_at, arrays.writes, free, made, least, after, read, cost)
    return Traces(least, after, read, cost)


@entry
def _follow(
    reads_at: Ints,
    reads: Ints,
    writes_at: Ints,
    writes: Ints,
    free: NDArray[np.bool_],
    made: Floats,
    least: Floats,
    after: Ints,
    read: Ints,
    cost: Floats,
) -> None:
    for node in range(len(made)):
        best, follows = made[node], _END
        for place in range(reads_at[node], reads_at[node + 1]):
            value = reads[place]
            if free[value]:
                continue
            if least[value] < best:
                best, follows = least[value], value
            if least[value] < cost[node]:
                cost[node], read[node] = least[value], value
        for place in range(writes_at[node], writes_at[node + 1]):
            least[writes[place]] += best
            after[writes[place]] = follows
