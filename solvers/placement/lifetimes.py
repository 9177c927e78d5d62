"""The allocations that the strict session makes for an order, one after the other.

Invariant: the k-th lifetime is the k-th request that the runtime makes of its allocator, with its bytes. A value that
shares memory or is empty makes no request. Time is counted in requests, so a lifetime's `start` is its own number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvers._loops import blocks_taken
from solvers.orders.arrays import Arrays, Ints, arrays_of, rows
from solvers.placement.lives import Lives
from solvers.problem import Problem
from solvers.updates import HeldUpdates

ALIGNMENT = 64  # in bytes: the alignment that kernels expect of a tensor


class Requested:
    """The requests of many orders of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.arrays: Arrays = arrays_of(problem)
        self.updates = HeldUpdates(problem)
        self.early_at, self.early = rows([node.early for node in problem.nodes])
        self.late_at, self.late = rows(
            [(node.workspace,) if node.workspace and not node.early else () for node in problem.nodes]
        )

    def by(self, order: Sequence[int]) -> Lives:
        """A step asks for workspace that comes early, for its writes, and for workspace that comes late."""
        steps = self.updates.in_time(np.asarray(order, np.int64))
        first, held, last = blocks_taken(self.arrays, steps)
        assert len(first), "only orders that can run have requests"
        block_step = np.repeat(np.arange(len(steps)), np.diff(first))[held > 0]
        early_step, early = _of_steps(self.early_at, self.early, steps)
        late_step, late = _of_steps(self.late_at, self.late, steps)
        step = np.concatenate((early_step, block_step, late_step))
        until = np.concatenate((early_step, last[held > 0], late_step))  # the step after which each is let go
        turn = np.argsort(step, kind="stable")
        asked = np.cumsum(np.bincount(step, minlength=len(steps) + 1))  # after each step
        sizes = np.concatenate((early, held[held > 0], late))
        return Lives(np.arange(len(step)), asked[until][turn], sizes[turn])


def _of_steps(at: Ints, items: Ints, steps: Ints) -> tuple[Ints, Ints]:
    """The items of each step's node, in turn, and whose they are."""
    count = np.diff(at)[steps]
    step = np.repeat(np.arange(len(steps)), count)
    place = np.arange(len(step)) - np.repeat(np.cumsum(count) - count, count)
    return step, items[at[steps[step]] + place]
