"""Spend the memory that a schedule leaves over: drop recomputations, dearest first, as long as the rest still fits.

To leave a recomputation out is to keep the copy before it; the order says all.

Invariant: what comes out is legal, within the budget, no dearer, and has no recomputation that could be left out alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.orders.arrays import Arrays, Ints
from solvers.orders.measure import ILLEGAL, measure, trim


def keep_more(arrays: Arrays, order: Ints, budget: int, stopped: Callable[[], bool]) -> Ints:
    """`order` must fit. Repeats until nothing more can be left out."""
    while True:
        kept = np.ones(len(order), np.bool_)
        for step in _recomputations(arrays, order):
            if stopped():
                return order[kept]
            kept[step] = False
            _, peak = measure(arrays, order[kept])
            if peak == ILLEGAL or peak > budget:
                kept[step] = True
        if kept.all():
            return order
        order = trim(arrays, order[kept])


def _recomputations(arrays: Arrays, order: Ints) -> list[int]:
    """The steps that compute something again, dearest first."""
    _, first = np.unique(order, return_index=True)
    again = np.ones(len(order), np.bool_)
    again[first] = False
    steps = np.flatnonzero(again)
    return steps[np.argsort(-arrays.cost[order[steps]], kind="stable")].tolist()
