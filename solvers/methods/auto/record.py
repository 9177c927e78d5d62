"""The best order that a search has met: what anneal.hpp writes down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvers.methods.auto.layout import LONGEST
from solvers.orders.arrays import Ints

NOTHING = 1 << 62  # more bytes over budget than any order has
EXCESS, COST, LENGTH, UNWRITTEN, CHANGES = range(5)


class Record(NamedTuple):
    steps: Ints
    facts: Ints  # bytes over budget, cost and length of the best order, whether it is to be written, changes since
    journal: Ints
    nodes: Ints  # of slots, while an order is written down


def empty_record(slots: int) -> Record:
    facts = np.zeros(5, np.int64)
    facts[EXCESS] = NOTHING
    return Record(np.zeros(slots, np.int64), facts, np.zeros(slots + 4 * LONGEST, np.int64), np.zeros(slots, np.int64))
