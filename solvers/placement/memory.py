"""The memory in which the values of an order must find room, for one kind of session: what fits is said here alone.

Invariant: an order fits exactly where it lacks nothing. Whoever moves ops about, narrows or walks asks this, and knows
no allocator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import cached_property

import numpy as np

from solvers._loops import held_later
from solvers.annealing.local import LocalSearch
from solvers.clock import Clock
from solvers.orders.arrays import Arrays, arrays_of
from solvers.placement.lifetimes import Requested
from solvers.placement.packing import pack
from solvers.placement.pattern import outputs_apart
from solvers.problem import Problem
from solvers.reductions.contraction import Contraction
from solvers.reductions.views import reduced
from solvers.updates import following_readers


class MemoryModel(ABC):
    """`room`: the bytes that values have, inputs and weights not among them. `live`: the problem whose live bytes no
    height is below.

    `as_they_come`: values are placed in the order of their requests, so that the order of computes matters more.
    """

    as_they_come = False

    def __init__(self, problem: Problem, room: int) -> None:
        self.problem, self.room = problem, room
        self.live = problem

    def with_room(self, room: int) -> MemoryModel:
        """The same memory with more or less room."""
        other = copy(self)
        other.room = room
        return other

    @cached_property
    def smaller(self) -> Contraction:
        """What orders are moved about in."""
        return reduced(self.live)

    @cached_property
    def arrays(self) -> Arrays:
        return arrays_of(self.smaller.problem)

    @cached_property
    def _local(self) -> LocalSearch:
        return LocalSearch(following_readers(self.smaller.problem), 0, 0)

    def local(self, live: int, seed: int, roof: int | None = None) -> LocalSearch:
        """The search of orders that hold no more than so many bytes at once."""
        resident = self.live.resident
        return self._local.within(resident + live, seed, None if roof is None else resident + roof)

    @abstractmethod
    def height(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        """The bytes that the order needs. `effort`: how hard is tried to make that less, where that can be tried."""

    def lacking(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        """The bytes by which the room is too small."""
        return max(0, self.height(order, clock, effort) - self.room)


class PlannedBlock(MemoryModel):
    """One block in which each value has a place of its own, chosen before the run."""

    @cached_property
    def requested(self) -> Requested:
        return Requested(self.problem)

    def height(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        return pack(self.requested.by(order), clock=clock, effort=effort, room=self.room).block


class LaterRuns(MemoryModel):
    """The block of a default session's later runs, and the outputs beside it (`pattern.py`)."""

    as_they_come = True

    def __init__(self, problem: Problem, room: int) -> None:
        super().__init__(problem, room)
        self.live = outputs_apart(problem)

    @cached_property
    def requested(self) -> Arrays:
        return arrays_of(self.problem)

    def height(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        return held_later(self.requested, np.asarray(order, np.int64))
