"""A problem as flat tables for the compiled search; written for the oracle alone, from the vocabulary.

Invariant: says what the Problem says, in the order in which it says it; `kernels` are runs of nodes that stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.problem import RESIDENT, Problem

Ints = NDArray[np.int64]
OF_RESIDENT = -1  # a view of an input or a weight
NOT_A_VIEW = -2


class Tables(NamedTuple):
    """Row i of x lies at x_at[i]:x_at[i + 1]."""

    kernel_at: Ints
    kernel: Ints
    reads_at: Ints
    reads: Ints
    writes_at: Ints
    writes: Ints
    base: Ints  # for each place in `writes`: what it is a view of
    over_at: Ints  # for each place in `writes`: the reads whose place it may take
    over: Ints
    size: Ints
    writer: Ints
    readers: Ints  # for each value: a bit for each node that reads it
    cost: Ints
    work: Ints
    once: Ints
    before: Ints  # for each node: a bit for each update that it must come before
    optional: Ints
    output: Ints
    unread_stay: bool
    resident: int


def tables_of(problem: Problem, kernels: Sequence[Sequence[int]] | None) -> Tables:
    nodes, values = problem.nodes, range(len(problem.sizes))
    kernel_at, kernel = _rows(kernels if kernels is not None else [[index] for index in range(len(nodes))])
    reads_at, reads = _rows([sorted(set(node.reads)) for node in nodes])
    writes_at, writes = _rows([node.writes for node in nodes])
    pairs = [(node, write) for node in nodes for write in node.writes]
    views = [[base for view, base in node.views if view == write] for node, write in pairs]
    viewed = [{base for _, base in node.views} for node, _ in pairs]  # memory that goes on being looked at
    over_at, over = _rows(
        [
            [read for over, read in node.overwrites if over == write and read not in bases]
            for (node, write), bases in zip(pairs, viewed, strict=True)
        ]
    )
    writer = {write: index for index, node in enumerate(nodes) for write in node.writes}
    return Tables(
        kernel_at,
        kernel,
        reads_at,
        reads,
        writes_at,
        writes,
        _ints([(OF_RESIDENT if bases[0] == RESIDENT else bases[0]) if bases else NOT_A_VIEW for bases in views]),
        over_at,
        over,
        _ints(problem.sizes),
        _ints([writer[value] for value in values]),
        _ints([sum(1 << index for index, node in enumerate(nodes) if value in node.reads) for value in values]),
        _ints([node.cost for node in nodes]),
        _ints([node.workspace for node in nodes]),
        _ints([node.once for node in nodes]),
        _ints([sum(1 << update for update, inputs in _updates(problem) if inputs & read) for read in _inputs(problem)]),
        _ints([value in problem.optional for value in values]),
        _ints([value in problem.outputs for value in values]),
        problem.unread_stay,
        problem.resident,
    )


def _updates(problem: Problem) -> list[tuple[int, set[int]]]:
    """Each node that updates inputs, and which."""
    return [(index, {number for _, number in node.updates}) for index, node in enumerate(problem.nodes)]


def _inputs(problem: Problem) -> list[set[int]]:
    """The inputs that each node reads, by itself or through views."""
    behind: dict[int, set[int]] = {}
    found = []
    for node in problem.nodes:
        own = {number for number, _ in node.takes}
        found.append(own.union(*(behind.get(value, set()) for value in node.reads)))
        fresh = {write for write, _ in node.updates}
        for write, base in reversed(node.views):
            behind[write] = found[-1] if write not in fresh and (base == RESIDENT or behind.get(base)) else set()
    return found


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.cumsum([0, *(len(row) for row in rows)])
    return starts.astype(np.int64), _ints([item for row in rows for item in row])


def _ints(items: Sequence[int]) -> Ints:
    return np.array(items, dtype=np.int64)
