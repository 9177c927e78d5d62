"""The memory in which the values of an order must find room, for one kind of session: what fits is said here alone.

Invariant: an order fits exactly where it lacks nothing. Whoever moves ops about, narrows or walks asks this, and knows
no allocator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from solvers.clock import Clock
from solvers.placement.later import height_of
from solvers.placement.lifetimes import Lifetime, requests
from solvers.placement.packing import pack, reaches
from solvers.placement.pattern import outputs_apart
from solvers.plan import lower
from solvers.problem import Problem


class MemoryModel(ABC):
    """`room`: the bytes that values have, inputs and weights not among them. `live`: the problem whose live bytes no
    height is below.

    `as_they_come`: values are placed in the order of their requests, so that the order of computes matters more.
    """

    as_they_come = False

    def __init__(self, problem: Problem, room: int) -> None:
        self.problem, self.room = problem, room
        self.live = problem

    @abstractmethod
    def height(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        """The bytes that the order needs. `effort`: how hard is tried to make that less, where that can be tried."""

    def lacking(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        """The bytes by which the room is too small."""
        return max(0, self.height(order, clock, effort) - self.room)

    def fits(self, order: Sequence[int], clock: Clock) -> bool:
        """Whether nothing is lacking, as far as a quick search for places tells."""
        return not self.lacking(order, clock)


class PlannedBlock(MemoryModel):
    """One block in which each value has a place of its own, chosen before the run."""

    def height(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        return pack(self._lifetimes(order), clock=clock, effort=effort, room=self.room).height

    def fits(self, order: Sequence[int], clock: Clock) -> bool:
        return reaches(self._lifetimes(order), self.room, clock)

    def _lifetimes(self, order: Sequence[int]) -> tuple[Lifetime, ...]:
        return requests(self.problem, lower(self.problem, order)).lifetimes


class LaterRuns(MemoryModel):
    """The block of a default session's later runs, and the outputs beside it (`pattern.py`)."""

    as_they_come = True

    def __init__(self, problem: Problem, room: int) -> None:
        super().__init__(problem, room)
        self.live = outputs_apart(problem)

    def height(self, order: Sequence[int], clock: Clock | None = None, effort: int = 0) -> int:
        return height_of(self.problem, order)
