"""The best order met, written down as seldom as may be: until then what has changed since is kept.

Invariant: with `UNWRITTEN` the best order is the one that the state has come to, less the changes in the journal, and
no compute has been spread anew since; else it stands in `steps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvers.methods.auto.layout import AT, LOG, LOGGED, LONGEST, SLOTS, STEPS, TOTAL
from solvers.orders.arrays import Ints
from solvers.orders.compiled import inner

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


@inner
def note_best(s: Ints, record: Record, over: int) -> None:
    """The order that the state has come to is the best."""
    facts = record.facts
    facts[EXCESS], facts[COST], facts[LENGTH] = over, s[TOTAL], s[STEPS]
    facts[UNWRITTEN], facts[CHANGES] = 1, 0


@inner
def note_change(s: Ints, record: Record) -> None:
    """The last move has led away from there."""
    facts = record.facts
    if not facts[UNWRITTEN]:
        return
    for place in range(4 * s[LOGGED]):
        record.journal[facts[CHANGES] + place] = s[s[LOG] + place]
    facts[CHANGES] += 4 * s[LOGGED]
    if facts[CHANGES] > len(record.nodes):
        write_down(s, record)


@inner
def write_down(s: Ints, record: Record) -> None:
    facts, nodes = record.facts, record.nodes
    if not facts[UNWRITTEN]:
        return
    for slot in range(s[SLOTS]):
        nodes[slot] = s[s[AT] + slot]
    for place in range(facts[CHANGES] - 4, -1, -4):
        node, slot, was = record.journal[place], record.journal[place + 1], record.journal[place + 2]
        if slot >= 0:
            nodes[slot] = -1
        if was >= 0:
            nodes[was] = node
    step = 0
    for slot in range(s[SLOTS]):
        if nodes[slot] >= 0:
            record.steps[step] = nodes[slot]
            step += 1
    facts[UNWRITTEN] = 0
