"""Another order of first computes: order alone can halve a peak.

Invariant: every node runs once, the order is legal, and the given order is kept unless another has fewer bytes over the
budget.
"""

from __future__ import annotations

import numpy as np

from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.clock import Clock
from solvers.orders.arrays import Arrays, Ints, arrays_of
from solvers.orders.measure import memory_of
from solvers.problem import Problem
from solvers.reductions.first_computes import in_order_of, lazy_orders
from solvers.reductions.views import Contraction
from solvers.updates import following_readers

_PER_NODE, _MOST = 500, 150_000  # moves of a go
_GOES = 0, 2  # from each order: by what the loop counts, and by what the order needs


def reorder(problem: Problem, budget: int, seed: int = 0, clock: Clock | None = None) -> Contraction:
    """The problem with its nodes in a better order for the budget, and the way back. When time ends, it is the best
    order so far."""
    ordered, clock = following_readers(problem), clock or Clock()
    arrays, local = arrays_of(ordered), LocalSearch(ordered, budget, seed)
    given = range(len(problem.nodes))
    starts = [np.array(order, np.int64) for order in (given, *lazy_orders(ordered))]
    moves = min(_PER_NODE * len(given), _MOST)
    moved = [local.go(order, go, moves, clock, Kept.REPEATS).order for order in starts for go in _GOES]
    best = min([starts[0], *moved], key=lambda order: _rank(arrays, order, budget))
    return in_order_of(problem, best.tolist())


def _rank(arrays: Arrays, order: Ints, budget: int) -> tuple[int, int]:
    memory = memory_of(arrays, order)
    return int(np.maximum(memory - budget, 0).sum()), int(memory.max())
