"""A problem as flat arrays, for compiled code.

Invariant: the arrays say exactly what the Problem says; nothing is rounded, reordered or left out, except that a
repeated read is listed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.problem import Node, Problem

Ints = NDArray[np.int64]
NO_VIEW = -2


class Arrays(NamedTuple):
    """Row i of x lies in `x_at[i]:x_at[i + 1]`."""

    cost: Ints
    workspace: Ints
    once: NDArray[np.bool_]
    backward: NDArray[np.bool_]
    reads_at: Ints
    reads: Ints
    writes_at: Ints
    writes: Ints
    view_of: Ints  # for each place in `writes`: the base, RESIDENT or NO_VIEW
    over_at: Ints  # for each place in `writes`: the reads that it may overwrite
    over: Ints
    size: Ints
    writer: Ints
    users_at: Ints  # for each value: its readers, in order
    users: Ints
    output: NDArray[np.bool_]
    optional: NDArray[np.bool_]
    unread_stay: bool
    resident: int


def arrays_of(problem: Problem) -> Arrays:
    nodes = problem.nodes
    reads_at, reads = rows([tuple(dict.fromkeys(node.reads)) for node in nodes])
    writes_at, writes = rows([node.writes for node in nodes])
    over_at, over = rows([node.may_overwrite(write, problem.sizes) for node in nodes for write in node.writes])
    users_at, users = rows(problem.readers())
    count = len(problem.sizes)
    return Arrays(
        cost=ints([node.cost for node in nodes]),
        workspace=ints([node.workspace for node in nodes]),
        once=np.array([node.once for node in nodes], dtype=np.bool_),
        backward=np.array([node.backward for node in nodes], dtype=np.bool_),
        reads_at=reads_at,
        reads=reads,
        writes_at=writes_at,
        writes=writes,
        view_of=ints([_base(node, write) for node in nodes for write in node.writes]),
        over_at=over_at,
        over=over,
        size=ints(problem.sizes),
        writer=ints(problem.writers()),
        users_at=users_at,
        users=users,
        output=_flags(problem.outputs, count),
        optional=_flags(problem.optional, count),
        unread_stay=problem.unread_stay,
        resident=problem.resident,
    )


def rows(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.zeros(len(lists) + 1, dtype=np.int64)
    starts[1:] = np.cumsum([len(row) for row in lists], dtype=np.int64)
    return starts, ints([item for row in lists for item in row])


def _base(node: Node, write: int) -> int:
    base = node.base(write)
    return NO_VIEW if base is None else base


def ints(items: Sequence[int]) -> Ints:
    return np.array(items, dtype=np.int64)


def _flags(values: Sequence[int] | frozenset[int], count: int) -> NDArray[np.bool_]:
    flags = np.zeros(count, dtype=np.bool_)
    flags[list(values)] = True
    return flags
