"""The arena of `region` for the search over orders: the requests of an order that find no room in it.

Invariant: nothing is refused exactly where `region.stuck_at` is None for the plan of the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvers._loops import refused
from solvers.orders.arrays import Ints, arrays_of, rows
from solvers.placement.region import rounded
from solvers.problem import Problem


class Pieces(NamedTuple):
    """The workspace blocks of nodes, in whole units of the arena; row i of `bytes` is of node i."""

    at: Ints
    bytes: Ints
    early: Ints  # how many of the blocks come before the node's results


def pieces_of(problem: Problem) -> Pieces:
    work = [node.early or ((node.workspace,) if node.workspace else ()) for node in problem.nodes]
    at, sizes = rows([tuple(map(rounded, one)) for one in work])
    return Pieces(at, sizes, np.array([len(node.early) for node in problem.nodes], np.int64))


def refused_of(problem: Problem, order: Sequence[int], room: int) -> int:
    """The bytes by which requests find no chunk large enough in an arena of `room` bytes; -1 for an illegal order."""
    return refused(arrays_of(problem), pieces_of(problem), np.asarray(order, np.int64), room)
