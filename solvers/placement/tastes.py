"""Preferences among lifetimes that could have the same place: what is placed first, where nothing else decides.

Invariant: a rank is a permutation of the lifetimes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.orders.arrays import Ints
from solvers.placement.canonical import Sections

TASTES = ("TwA", "TWA", "WAT", "TAT", "ZTW", "wAT")  # see `ranks`


def ranks(case: Sections, length: Ints) -> Iterator[Ints]:
    """Orders of preference: by the most that is held meanwhile (T), length in time (W) and in sections (w), size (Z)
    and area (A), the greater first."""
    spans = np.column_stack((case.first, case.last)).ravel()
    most = np.maximum.reduceat(np.append(case.held, 0), spans)[::2]  # what lies between two spans is dropped
    keys = {"T": most, "W": length, "w": case.last - case.first, "Z": case.size, "A": length * case.size}
    for taste in TASTES:
        yield ranked(np.lexsort((np.arange(len(length)), *(-keys[letter] for letter in reversed(taste)))))


def ranked(order: Ints) -> Ints:
    """For each item its place in the order."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank
