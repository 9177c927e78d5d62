"""An order of computes as one flat array of integers, for the compiled search: where everything in it lies.

Computes stand in slots with gaps between them, so that one more fits in without moving others; when a gap is used up,
all are spread anew. Invariant: tables keep their places; `s[s[RUNS] + node * MOST + k]` is the slot of a node's k-th
compute, `s[s[END] + value * MOST + k]` the slot of the last compute that reads its k-th copy, or of its own if none.
"""

from __future__ import annotations

import numpy as np

from solvers.methods.exact.tables import MOST, NODES, VALUES, saved_in
from solvers.orders.arrays import Ints

SLOTS, STEPS, TOTAL, BUDGET, ROOF, REPEATED, CROWDED, LOGGED = range(8)
RUNS, COUNT, END, AT, BEFORE, AFTER, HELD, TREE, ASKED, AGAIN, PLACE, SHARED, STACK, LOG = range(8, 22)
MAXIMUM, ADDED, KNOWN, ABOVE, OVER, SLOPE, UP, DOWN, FIELDS = range(9)  # fields of a node of the tree, and their number

EMPTY = 1 << 60
LONGEST = 256  # changes in one move, at most
GAP = 4  # slots for each compute, at least
WIDE = 32  # slots in a block of the tree


def blank(tables: Ints, steps: int, budget: int) -> Ints:
    """An empty state with room for several times `steps` computes."""
    nodes, values = int(tables[NODES]), int(tables[VALUES])
    slots = 1 << int(np.ceil(np.log2(GAP * (max(steps, nodes) + 8))))
    lengths = (
        nodes * MOST,
        nodes,
        values * MOST,
        slots,
        slots,
        slots,
        slots,
        FIELDS * 2 * slots // WIDE,
        2 * slots // WIDE,
        nodes,
        nodes,
        values,
        400,
        4 * LONGEST + 40,
    )
    starts = LOG + 1 + np.cumsum([0, *lengths])
    state = np.zeros(int(starts[-1]), np.int64)
    state[SLOTS], state[BUDGET], state[ROOF] = slots, budget, EMPTY
    state[RUNS : LOG + 1] = starts[:-1]
    reads, saved = saved_in(tables)
    state[state[SHARED] + reads[saved > 0]] = 1
    return state


def held_in(state: Ints) -> Ints:
    """The row of bytes in use at each slot of an order that was just loaded."""
    return state[state[HELD] : state[HELD] + state[SLOTS]]
