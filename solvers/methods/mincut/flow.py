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
Ints = NDArray[np.int64]
Integers = Sequence[int] | Ints


@dataclass(frozen=True, slots=True)
class MinimumCut:
    """`near[v]`: vertex v is on the source's side, in the cut that lies nearest to the sink."""

    value: int
    near: NDArray[np.bool_]


def minimum_cut(
    count: int, tails: Integers, heads: Integers, capacities: Integers, source: int, sink: int
) -> MinimumCut:
    """The least cut between two of `count` vertices; arcs lie side by side in three columns."""
    from_, to, most = (np.ascontiguousarray(column, np.int64) for column in (tails, heads, capacities))
    return MinimumCut(*_loops.minimum_cut(count, from_, to, most, source, sink))
