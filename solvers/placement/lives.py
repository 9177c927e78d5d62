"""Lifetimes as columns: what is held, from when to when; and what of it is held at once.

Invariant: moments only count, and an end comes before what begins at its moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from solvers.orders.arrays import Ints


class Lives(NamedTuple):
    """The k-th takes `size[k]` from the moment `start[k]` until just before the moment `end[k]`."""

    start: Ints
    end: Ints
    size: Ints

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int]]) -> Lives:
        """From the start, the end and the size of each."""
        return cls(*np.array(list(rows), np.int64).reshape(-1, 3).T.copy())

    def only(self, which: np.ndarray) -> Lives:
        """Those of these numbers, or for which a flag is set."""
        return Lives(*(column[which] for column in self))

    def beside(self, *others: Lives) -> Lives:
        """With others behind them."""
        return Lives(*(np.concatenate(columns) for columns in zip(self, *others, strict=True)))

    def real(self) -> Ints:
        """The numbers of those that take room."""
        return np.flatnonzero((self.size > 0) & (self.end > self.start))

    def most_at_once(self) -> int:
        moments = np.concatenate((self.end, self.start))
        order = np.argsort(moments, kind="stable")
        return int(np.cumsum(np.concatenate((-self.size, self.size))[order]).max(initial=0))

    def height(self, offsets: Ints) -> int:
        return int((offsets + self.size).max(initial=0))
