"""The memory of the runtime's own arena: it grows by regions, and gives none of them back.

Invariant: never less than the live bytes. A request takes the smallest free chunk that holds it, and splits the chunk
only if half of it or more would be left over. Where there is none, a region is added, at least twice as large as the
last. That is ONNX Runtime's best-fit-with-coalescing arena with its default settings.
"""

from __future__ import annotations

from heapq import heappop, heappush

from solvers.placement.chunks import Chunks, rounded
from solvers.placement.lives import Lives

FIRST = 1 << 20  # bytes of the first region
DEAD = 128 << 20  # a larger remainder is always split off
LARGEST = 1 << 30  # the most bytes of a region that is added without a larger request
APART = 1 << 50  # the distance between the addresses of two regions, so that their chunks never join


class GrowingArena:
    """Regions whose free chunks are in one list; `touched`: how far each region was ever used."""

    def __init__(self) -> None:
        self.free = Chunks()
        self.used: dict[int, int] = {}
        self.next = FIRST
        self.touched: list[int] = []

    def take(self, size: int) -> int:
        chunk = self.free.smallest(size)
        if chunk is None:
            self._extend(size)
            chunk = self.free.smallest(size)
            assert chunk is not None
        found, address = chunk
        if found >= 2 * size or found - size >= DEAD:
            self.free.put(address + size, found - size)
            found = size
        self.used[address] = found
        region, start = divmod(address, APART)
        self.touched[region] = max(self.touched[region], start + size)
        return address

    def give_back(self, address: int) -> None:
        self.free.give_back(address, self.used.pop(address))

    def _extend(self, size: int) -> None:
        grown = self.next >= size
        while self.next < size:
            self.next *= 2
        self.free.put(len(self.touched) * APART, self.next)
        self.touched.append(0)
        if grown:
            self.next = min(2 * self.next, max(self.next, LARGEST))


def grown(lives: Lives) -> int:
    """The bytes that such an arena has touched by the end of a first run."""
    arena = GrowingArena()
    ending: list[tuple[int, int]] = []  # the moment and the address
    for start, end, size in sorted(zip(*(column.tolist() for column in lives), strict=True)):
        while ending and ending[0][0] <= start:
            arena.give_back(heappop(ending)[1])
        if size:
            heappush(ending, (end, arena.take(rounded(size))))
    return sum(arena.touched)
