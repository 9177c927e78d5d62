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
    """`rise`: how much is taken above each lifetime, as long as it lives."""

    start: Ints
    end: Ints
    size: Ints
    rise: Ints

    def of(self, items: Ints) -> Lives:
        return Lives(*(column[items] for column in self))

    def placed(self, order: Ints) -> Ints:
        """Offsets: each, in this order, at the lowest place that is free. Others have offset 0."""
        offsets = np.zeros(len(self.size), np.int64)
        place_in_order(order, self, np.iinfo(np.int64).max, offsets)
        return offsets

    def largest_first(self) -> Ints:
        """Offsets, the largest placed first; of equal ones, the longest."""
        return self.placed(np.lexsort((self.start, self.start - self.end, -self.size)))

    def height(self, offsets: Ints) -> int:
        return int((offsets + self.size + self.rise).max(initial=0))

    def held(self) -> Ints:
        """How much is held at each moment, up to the last end."""
        change = np.zeros(int(self.end.max(initial=0)) + 1, np.int64)
        np.add.at(change, self.start, self.size)
        np.add.at(change, self.end, -self.size)
        return np.cumsum(change)[:-1]
