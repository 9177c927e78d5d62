"""A problem, and a set of runs, each as one flat array of integers: what the annealing reads and writes.

The starts of the tables stand in front. `tables.hpp` and `runs.hpp` give them names; the size of value v is
`t[t[SIZE] + v]`.

Invariant: the problem's tables never change; a state's tables keep their places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvers.orders.arrays import Arrays, Ints

NODES, VALUES, RESIDENT, STAY = range(4)
COST, WORKSPACE, ONCE, READS_AT, READS, SAVED, WRITES_AT, WRITES, SIZE, WRITER, USERS_AT, USERS, OPTIONAL = range(4, 17)

MOST = 16  # runs of one node at most
STEPS, TOTAL, EXCESS, BUDGET = range(4)
RUNS, COUNT, KEYS, MEMORY, ACROSS = range(4, 9)


def pack(arrays: Arrays) -> Ints:
    """The problem's tables. SAVED has, for each read, the size of the write that takes its place if the copy ends
    there."""
    return _flat(
        (len(arrays.cost), len(arrays.size), arrays.resident, int(arrays.unread_stay)),
        (
            arrays.cost,
            arrays.workspace,
            arrays.once.astype(np.int64),
            arrays.reads_at,
            arrays.reads,
            _saved(arrays),
            arrays.writes_at,
            arrays.writes,
            arrays.size,
            arrays.writer,
            arrays.users_at,
            arrays.users,
            arrays.optional.astype(np.int64),
        ),
    )


def sizes_in(tables: Ints) -> Ints:
    """The row of the values' sizes."""
    return tables[tables[SIZE] : tables[SIZE] + tables[VALUES]]


def keys_in(state: Ints) -> Ints:
    """The row of keys of a set of runs."""
    return state[state[KEYS] : state[MEMORY]]


def blank(nodes: int, steps: int, budget: int) -> Ints:
    """A state without runs: for each node the stages of its runs, for each step its key and the memory in use."""
    lengths = (nodes * MOST, nodes, steps, steps, steps)
    return _flat((0, 0, 0, budget), tuple(np.zeros(length, np.int64) for length in lengths))


def keys_of(order: Ints, nodes: int) -> Ints:
    """Each compute as stage * (nodes + 1) + node; two runs for one stage become one."""
    fresh = np.zeros(len(order), np.int64)
    fresh[np.unique(order, return_index=True)[1]] = 1
    stages = np.cumsum(fresh) - fresh
    return np.unique(stages * (nodes + 1) + order)


def order_of(keys: Ints, nodes: int) -> Ints:
    """The order of computes, without the last node, which only reads the outputs."""
    return (keys % (nodes + 1))[:-1]


def _flat(numbers: Sequence[int], tables: Sequence[Ints]) -> Ints:
    header = len(numbers) + len(tables)
    starts = header + np.cumsum([0, *(len(table) for table in tables[:-1])])
    return np.concatenate([np.array(numbers, np.int64), starts.astype(np.int64), *tables])


def _saved(arrays: Arrays) -> Ints:
    """Only the first read that a write may overwrite counts, and never for an output or an optional write: a safe
    count."""
    saved = np.zeros(len(arrays.reads), np.int64)
    for node in range(len(arrays.cost)):
        taken: set[int] = set()
        for place in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
            write = arrays.writes[place]
            if arrays.output[write] or arrays.optional[write] or arrays.over_at[place] == arrays.over_at[place + 1]:
                continue
            over = int(arrays.over[arrays.over_at[place]])
            for read in range(arrays.reads_at[node], arrays.reads_at[node + 1]):
                if arrays.reads[read] == over and over not in taken:
                    saved[read] = arrays.size[write]
                    taken.add(over)
    return saved
