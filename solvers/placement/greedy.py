"""Lifetimes placed one by one in a given order, each at the lowest place that is free for as long as it lives.

Invariant: no two lifetimes that meet in time meet in address. Compiled; times, sizes and offsets are whole units.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.orders.compiled import entry

Ints = NDArray[np.int64]


@entry
def place(order: Ints, start: Ints, end: Ints, size: Ints, cap: int, offset: Ints) -> int:
    """Fill `offset` and return the height; stops early, with a height of `cap` or more, where that is reached."""
    count = len(order)
    placed = np.empty(count, np.int64)  # by offset
    height = 0
    for done in range(count):
        item = order[done]
        floor, first, last, bytes_ = 0, start[item], end[item], size[item]
        for rank in range(done):
            other = placed[rank]
            if start[other] >= last or end[other] <= first:
                continue
            if offset[other] >= floor + bytes_:
                break
            floor = max(floor, offset[other] + size[other])
        offset[item] = floor
        height = max(height, floor + bytes_)
        if height >= cap:
            return height
        low, high = 0, done
        while low < high:
            middle = (low + high) // 2
            if offset[placed[middle]] <= floor:
                low = middle + 1
            else:
                high = middle
        for rank in range(done, low, -1):
            placed[rank] = placed[rank - 1]
        placed[low] = item
    return height
