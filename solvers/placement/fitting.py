"""Orders made to fit a session's memory: with their ops moved about, or with others computed again.

Invariant: what comes out is legal and fits, and depends on the seed and on counted moves alone, unless time runs out.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from solvers.annealing.cooling import Kept
from solvers.clock import Clock
from solvers.placement.arranging import arrange_in_pattern
from solvers.placement.memory import MemoryModel
from solvers.placement.narrowing import narrowed
from solvers.placement.packing import SURE
from solvers.placement.quiet import quieter

Order = tuple[int, ...]
Fitting = Generator[bool, None, Order | None]  # a step at a time, which says whether an order that fits is known

ARRANGING = 0.5  # share of the time, at most


def moved_about(memory: MemoryModel, order: Sequence[int], seed: int, clock: Clock) -> Fitting:
    """The same computes in an order that fits; None if none was found."""
    if memory.as_they_come:
        return (yield from arrange_in_pattern(memory.problem, order, memory.room, seed, clock, Kept.REPEATS))
    for one in quieter(memory, order, seed, clock):
        if not memory.lacking(one, clock, SURE):
            return one
        yield False
    return None


def fitted(memory: MemoryModel, order: Sequence[int], seed: int, clock: Clock) -> Fitting:
    """The cheapest order met that fits, whose computes may be others; None if none was found."""
    found = None
    if memory.as_they_come:
        found = yield from arrange_in_pattern(memory.problem, order, memory.room, seed, clock.share(ARRANGING))
    return (yield from narrowed(memory, order, seed, clock)) if found is None else found
