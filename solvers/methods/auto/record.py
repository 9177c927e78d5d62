"""The best order that a search has met, as anneal.hpp writes it down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvers.methods.auto.layout import LONGEST
from solvers.orders.arrays import Ints

NOTHING = 1 << 62  # more bytes over budget than any order has
EXCESS, COST, LENGTH, UNWRITTEN, CHANGES = range(5)


class Record(NamedTuple):
    steps: Ints
    facts: Ints  # of the best order: bytes over budget, cost and length, whether it must be written down, changes since
    journal: Ints
    nodes: Ints  # the node of each slot, while an order is written down


def empty_record(slots: int) -> Record:
    facts = np.zeros(5, np.int64)
    facts[EXCESS] = NOTHING
    return Record(np.zeros(slots, np.int64), facts, np.zeros(slots + 4 * LONGEST, np.int64), np.zeros(slots, np.int64))
