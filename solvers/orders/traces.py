"""The cheapest way back from what is read to what it was made from.

A trace goes from a value to one that its node reads, and so on, and ends at the node that made its last. It costs what
each of its values does, and what that node does.

Invariant: of all traces from a value the cheapest is found; of equals, the shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers._loops import follow_traces
from solvers.orders.arrays import Arrays, Ints

Floats = NDArray[np.float64]
_END = -1

# of rows that a linear program's answer breaks, each of which says what a trace costs at least
ROUNDS = 60
STALLED = 3  # rounds without a real gain, after which no more are sought
MOST, FROM_PAIR = 300, 60  # rows found in a round, and for one pair of groups
BROKEN = 0.02  # by how much, at least


class BrokenTrace(NamedTuple):
    """A row that is broken: node `node` runs in group `until`, or waits up to it (`waits`), by more than `path` costs
    from what is held as `group` begins."""

    off: float  # by how much
    group: int
    until: int
    node: int
    path: list[int]
    waits: bool


class Traces(NamedTuple):
    least: Floats  # value -> the cost of its cheapest trace
    after: Ints  # value -> the value that follows it in that trace, or -1
    read: Ints  # node -> the value among its reads whose trace costs least, or -1
    cost: Floats  # node -> the cost of that trace; infinite if there is none

    def path(self, value: int) -> list[int]:
        found = [value]
        while self.after[found[-1]] != _END:
            found.append(int(self.after[found[-1]]))
        return found


def cheapest(arrays: Arrays, free: NDArray[np.bool_], held: Floats, made: Floats) -> Traces:
    """`held`: of each value; `made`: of each node; `free`: values that no trace goes to."""
    least, after = held.astype(np.float64), np.full(len(held), _END, np.int64)
    read = np.full(len(made), _END, np.int64)
    cost = np.full(len(made), np.inf)
    follow_traces(arrays, free, made, least, after, read, cost)
    return Traces(least, after, read, cost)


def broken(
    arrays: Arrays, free: NDArray[np.bool_], runs: Sequence[Floats], held: Callable[[int], Floats], last: Ints
) -> Iterator[BrokenTrace]:
    """The rows that are broken most, of each pair of groups. `runs`: of each node, by group; `held`: of each value, as
    a group begins; `last`: the last group of a node's window, -1 where the window is one group."""
    before = np.zeros(len(last))  # what each node ran in groups before
    for group in range(1, len(runs)):
        before += runs[group - 1]
        there, made = held(group), np.zeros(len(last))
        for until in range(group, len(runs)):
            made += runs[until]
            traces = cheapest(arrays, free, there, made)
            waits = np.where(last == until, 1.0 - before, 0.0)
            off = np.maximum(runs[until], waits) - traces.cost
            for node in np.argsort(-off, kind="stable")[:FROM_PAIR].tolist():
                if off[node] < BROKEN:
                    break
                path, is_waiting = traces.path(int(traces.read[node])), bool(waits[node] > runs[until][node])
                yield BrokenTrace(float(off[node]), group, until, node, path, is_waiting)
