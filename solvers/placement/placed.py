"""Where every value of a plan lies: one block of memory, and an offset in it for each allocation of a run.

Invariant: the k-th allocation is the k-th that the strict session makes, and nothing held at the same time overlaps.
Outputs have places in the block like all else: the allocator sees to it that what a caller still holds is not written
over.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.clock import Clock
from solvers.placement.largest import Placement
from solvers.placement.lifetimes import ALIGNMENT, Lifetime, requests
from solvers.placement.packing import EFFORT, pack
from solvers.plan import Plan
from solvers.problem import Problem


def placement_of(
    problem: Problem, plan: Plan, clock: Clock | None = None, effort: int = EFFORT, room: int = 0
) -> Placement:
    """The placement of a plan; what is resident lies outside of the block. `room`: a block as good as the least."""
    return placement(requests(problem, plan).lifetimes, clock, effort, room)


def placement(
    lifetimes: Sequence[Lifetime], clock: Clock | None = None, effort: int = EFFORT, room: int = 0
) -> Placement:
    """Lifetimes, in the order of allocation, packed into a block."""
    packing = pack(lifetimes, ALIGNMENT, clock, effort, room)
    sizes = (one.bytes for one in lifetimes)
    return Placement(packing.height, packing.bound, tuple(zip(sizes, packing.offsets, strict=True)))
