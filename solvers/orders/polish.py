"""Uses spare memory of an order: drops computes whose copies can be kept after all.

Invariant: the result is legal, no dearer than the given order, and within the budget if that was.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.orders.arrays import Arrays, Ints
from solvers.orders.measure import measure, trim


def polish(arrays: Arrays, order: Ints, budget: int, stopped: Callable[[], bool]) -> Ints:
    """Drop repeated computes, dearest first, as long as the order fits; again until none can go."""
    best, (cost, _) = order, measure(arrays, order)
    while not stopped():
        before = cost
        for node in _repeated(arrays, best):
            best, cost = _without(arrays, best, cost, node, budget)
            if stopped():
                break
        if cost == before:
            return best
    return best


def _repeated(arrays: Arrays, order: Ints) -> list[int]:
    """Nodes that run more than once, dearest first."""
    nodes, times = np.unique(order, return_counts=True)
    return sorted(map(int, nodes[times > 1]), key=lambda node: (-int(arrays.cost[node]), node))


def _without(arrays: Arrays, order: Ints, cost: int, node: int, budget: int) -> tuple[Ints, int]:
    """The order with as few computes of the node as fit, always with the first one."""
    place = 1
    while True:
        places = np.flatnonzero(order == node)
        if place >= len(places):
            return order, cost
        fewer = trim(arrays, np.delete(order, places[place]))
        less, peak = measure(arrays, fewer)
        if 0 <= peak <= budget and less <= cost:
            order, cost = fewer, less
        else:
            place += 1
