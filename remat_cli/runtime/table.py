"""The places of a run's requests as a process keeps them that must stay small: two arrays, also in a file or a pipe.

Invariant: a request takes 16 bytes, and none of them is an object.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass

from solvers.placement.placed import Placement

HEAD = struct.Struct("<3q")  # block, bound, requests


@dataclass(frozen=True, slots=True)
class PlacesTable:
    """A placement: the k-th request's size and offset in the block."""

    block: int
    bound: int
    sizes: array[int]
    offsets: array[int]

    @staticmethod
    def of(placement: Placement) -> PlacesTable:
        sizes, offsets = (array("q", (pair[side] for pair in placement.allocations)) for side in (0, 1))
        return PlacesTable(placement.block, placement.bound, sizes, offsets)

    @staticmethod
    def read(content: bytes) -> PlacesTable:
        """What `content` gave; ValueError where it is cut short."""
        if len(content) < HEAD.size:
            raise ValueError("the table has no head")
        block, bound, count = HEAD.unpack_from(content)
        middle, end = HEAD.size + 8 * count, HEAD.size + 16 * count
        if len(content) != end:
            raise ValueError(f"the table has {len(content)} bytes, not {end}")
        return PlacesTable(block, bound, array("q", content[HEAD.size : middle]), array("q", content[middle:]))

    def content(self) -> bytes:
        return HEAD.pack(self.block, self.bound, len(self.sizes)) + self.sizes.tobytes() + self.offsets.tobytes()

    def placement(self) -> Placement:
        return Placement(self.block, self.bound, tuple(zip(self.sizes, self.offsets, strict=True)))
