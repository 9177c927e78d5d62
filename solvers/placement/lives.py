"""Lifetimes in whole units as columns, and the lowest free place for each in turn.

Invariant: no two lifetimes that are placed meet in time and in address.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers._loops import place_in_order

Ints = NDArray[np.int64]


class Lives(NamedTuple):
    start: Ints
    end: Ints
    size: Ints

    def placed(self, order: Ints) -> Ints:
        """Offsets: each, in this order, at the lowest place that is free. Others have offset 0."""
        offsets = np.zeros(len(self.size), np.int64)
        place_in_order(order, self, np.iinfo(np.int64).max, offsets)
        return offsets

    def largest_first(self) -> Ints:
        """Offsets, the largest placed first; of equal ones, the longest."""
        return self.placed(np.lexsort((self.start, self.start - self.end, -self.size)))

    def height(self, offsets: Ints) -> int:
        return int((offsets + self.size).max(initial=0))
