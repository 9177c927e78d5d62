"""A set of runs for the annealing of runs.hpp, which keeps the memory at every step as it adds and takes away."""

from __future__ import annotations

import numpy as np

from solvers._loops import fill_runs
from solvers.methods.exact.tables import NODES, blank, keys_of
from solvers.orders.arrays import Ints


def start(tables: Ints, budget: int, order: Ints) -> Ints:
    """The state nearest to an order; the tables are of a problem with a last node that reads the outputs."""
    nodes = int(tables[NODES])
    room = 4 * nodes + 1000
    keys = keys_of(np.append(order, nodes - 1), nodes)
    if len(keys) > room:
        keys = keys_of(np.arange(nodes), nodes)
    state = blank(nodes, room, budget)
    fill_runs(tables, state, keys)
    return state
