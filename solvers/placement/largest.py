"""Largest first, without the compiler of the solvers' loops: for a program that places a run and must stay small.

Invariant: no two lifetimes that meet in time meet in address; `block` is `bound` where nothing could be better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.placement.lifetimes import ALIGNMENT, Lifetime

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placement:
    """`block`: bytes that hold everything; `bound`: no block can be smaller; `allocations`: (size, offset) in order."""

    block: int
    bound: int
    allocations: tuple[tuple[int, int], ...]


def largest_first(lifetimes: Sequence[Lifetime]) -> Placement:
    """Each at the lowest place that is free for as long as it lives; of equal ones, the longest first."""
    start = np.array([one.start for one in lifetimes], np.int64)
    end = np.array([one.end for one in lifetimes], np.int64)
    size = np.array([-(-one.bytes // ALIGNMENT) * ALIGNMENT for one in lifetimes], np.int64)
    offset, placed = np.zeros(len(size), np.int64), np.empty(0, np.int64)
    for item in np.lexsort((start, start - end, -size)):
        met = placed[(start[placed] < end[item]) & (end[placed] > start[item])]
        offset[item] = _gap(offset[met], size[met], size[item])
        placed = np.append(placed, item) if size[item] else placed
    pairs = zip((one.bytes for one in lifetimes), offset.tolist(), strict=True)
    return Placement(int((offset + size).max(initial=0)), _most_held(start, end, size), tuple(pairs))


def _gap(offset: Ints, size: Ints, wanted: int) -> int:
    """The lowest place between these, or on top of them."""
    order = np.argsort(offset)
    floors = np.concatenate(([0], np.maximum.accumulate((offset + size)[order])))
    free = np.flatnonzero(offset[order] - floors[:-1] >= wanted)
    return int(floors[free[0]] if len(free) else floors[-1])


def _most_held(start: Ints, end: Ints, size: Ints) -> int:
    change = np.zeros(int(end.max(initial=0)) + 1, np.int64)
    np.add.at(change, start, size)
    np.add.at(change, end, -size)
    return int(np.cumsum(change).max())
