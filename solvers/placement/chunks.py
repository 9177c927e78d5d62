"""Chunks that ONNX Runtime's best-fit-with-coalescing arena hands out.

Invariant: free chunks never touch, because a chunk that is given back joins its free neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, insort

ALIGNMENT = 256  # the arena hands out multiples of this


class Chunks:
    """Free chunks, known by their addresses. None is free at first: whoever has memory puts it in."""

    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []  # (size, address), sorted
        self.starts: dict[int, int] = {}  # address -> size
        self.ends: dict[int, int] = {}  # end -> address

    def smallest(self, size: int) -> tuple[int, int] | None:
        """Take out the smallest chunk that holds `size`, the lowest of equals, as its size and address."""
        place = bisect_left(self.free, (size, 0))
        if place == len(self.free):
            return None
        found, address = self.free.pop(place)
        del self.starts[address], self.ends[address + found]
        return found, address

    def give_back(self, address: int, size: int) -> None:
        """Put a chunk back, joined with its free neighbours."""
        if address in self.ends:
            before = self.ends[address]
            size += self._drop(before)
            address = before
        if address + size in self.starts:
            size += self._drop(address + size)
        self.put(address, size)

    def put(self, address: int, size: int) -> None:
        insort(self.free, (size, address))
        self.starts[address] = size
        self.ends[address + size] = address

    def _drop(self, address: int) -> int:
        size = self.starts.pop(address)
        del self.ends[address + size]
        self.free.pop(bisect_left(self.free, (size, address)))
        return size


def rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
