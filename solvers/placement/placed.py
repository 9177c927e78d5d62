"""The place of every value of a plan: one block of memory, and an offset in it for each allocation of a run.

Invariant: the k-th allocation is the k-th that the strict session makes, and no two that are held together overlap.
Outputs have places in the block like other values; the allocator ensures that outputs which a caller still holds are
not overwritten.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from heapq import heappop, heappush

from solvers.placement.lifetimes import ALIGNMENT
from solvers.placement.lives import Lives


@dataclass(frozen=True, slots=True)
class Placement:
    """`block`: bytes that hold everything; `bound`: no block can be smaller; `allocations`: (size, offset) in order."""

    block: int
    bound: int
    allocations: tuple[tuple[int, int], ...]


def holds(lives: Lives, placement: Placement) -> bool:
    """Whether a placement from elsewhere fits these lifetimes: their sizes, inside the block, without overlaps.

    Those held at a moment lie apart, so that a new one can overlap another only if it overlaps its neighbour.
    """
    if lives.size.tolist() != [size for size, _ in placement.allocations]:
        return False
    held: list[tuple[int, int]] = []  # begin and end in the block
    ends: list[tuple[int, tuple[int, int]]] = []
    for start, end, (size, offset) in zip(lives.start.tolist(), lives.end.tolist(), placement.allocations, strict=True):
        while ends and ends[0][0] <= start:
            _, gone = heappop(ends)
            del held[bisect_left(held, gone)]
        place = (offset, offset + size)
        at = bisect_left(held, place)
        apart = (at == 0 or held[at - 1][1] <= offset) and (at == len(held) or place[1] <= held[at][0])
        if offset < 0 or offset % ALIGNMENT or place[1] > placement.block or not apart:
            return False
        if size:
            insort(held, place)
            heappush(ends, (end, place))
    return True
