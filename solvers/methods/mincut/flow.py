"""Maximum flow in exact integers, by Dinic's algorithm.

Invariant: capacities are int64 and no arithmetic is rounded; a minimum cut below INFINITE crosses no infinite arc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers import _loops

INFINITE = 1 << 62
Arcs = Sequence[tuple[int, int, int]] | NDArray[np.int64]  # tail, head and capacity of each


@dataclass(frozen=True, slots=True)
class MinimumCut:
    """`near[v]`: vertex v is on the source's side, in the cut that lies nearest to the sink."""

    value: int
    near: NDArray[np.bool_]


def minimum_cut(count: int, arcs: Arcs, source: int, sink: int) -> MinimumCut:
    """The least cut between two of `count` vertices."""
    tails, heads, capacities = np.array(arcs, np.int64).reshape(-1, 3).T.copy()
    return MinimumCut(*_loops.minimum_cut(count, tails, heads, capacities, source, sink))
