"""Where pieces begin and end: for each op of a region and each piece, the places that it makes and that it reads.

Invariant: what an op makes in a piece covers all that is read of it there, and what is read outside of the region is
cut without overlap; a window's reach is made twice rather than waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from remat_cli.model.graph import Op
from remat_cli.pieces.regions import Links, Region
from remat_cli.pieces.ways import AlongAxis, Range, Way, grain, hull, scaled, widened


@dataclass(frozen=True, slots=True)
class Cut:
    """What an op does in one piece: the range of each operand that is cut."""

    inputs: tuple[Range | None, ...]
    outputs: tuple[Range | None, ...]


class Cutting:
    """A region's ops, in order, with their cuts."""

    def __init__(self, links: Links, region: Region) -> None:
        self.links, self.ways = links, dict(region.ways)
        self.ops = [op for op in links.graph.ops if op.name in self.ways]
        self.along = {
            name: cut for op in self.ops for name, cut in zip(op.outputs, self.ways[op.name].outputs) if name and cut
        }
        self.pieces = max(1, min(region.pieces, self._most()))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The size of each value along its axis."""
        return {name: self.links.graph.values[name].shape[cut.axis] for name, cut in self.along.items()}

    @cached_property
    def unit(self) -> int:
        """What all cuts are multiples of, in parts of an axis: with windows, whose sizes are odd, there is none."""
        if any(way.slide for way in self.ways.values()):
            return 0
        return gcd(*self._extents())

    def _extents(self) -> list[int]:
        values = self.links.graph.values
        return [
            values[name].shape[cut.axis]
            for op in self.ops
            for name, cut in (
                *zip(op.inputs, self.ways[op.name].inputs),
                *zip(op.outputs, self.ways[op.name].outputs),
            )
            if name and cut is not None
        ]

    def _most(self) -> int:
        """As many pieces as leave each op the least length that it asks for."""
        most = self.unit or min(self._extents(), default=1)
        for op in self.ops:
            way = self.ways[op.name]
            if way.least > 1:
                most = min(most, _size(self.links, op, way) // way.least)
        return most

    def part(self, size: int, piece: int) -> Range:
        """The places of an axis of that size that belong to the piece."""
        if self.unit:
            each = size // self.unit
            start, stop = (number * self.unit // self.pieces for number in (piece, piece + 1))
            return start * each, stop * each
        return piece * size // self.pieces, (piece + 1) * size // self.pieces

    def leaves(self, name: str) -> bool:
        """Whether the value is read whole as well, or is an output of the graph."""
        if name in self.links.graph.outputs:
            return True
        return any(
            reader.name not in self.ways
            or any(at == name and cut is None for at, cut in zip(reader.inputs, self.ways[reader.name].inputs))
            for reader in self.links.readers.get(name, ())
        )

    def cuts(self, piece: int) -> dict[str, Cut]:
        """What each op does in a piece: backwards from what is read outside."""
        needed: dict[str, Range] = {
            name: self.part(size, piece) for name, size in self.sizes.items() if self.leaves(name)
        }
        found = {}
        for op in reversed(self.ops):
            cut = self._cut(op, self.ways[op.name], piece, needed)
            found[op.name] = cut
            for name, part in zip(op.inputs, cut.inputs):
                if part is not None and name in self.along:
                    needed[name] = hull(needed.get(name), part)
        return {op.name: found[op.name] for op in self.ops}

    def _cut(self, op: Op, way: Way, piece: int, needed: Mapping[str, Range]) -> Cut:
        reads, makes = self._along(op.inputs, way.inputs), self._along(op.outputs, way.outputs)
        if way.total:
            return Cut(_each(reads, lambda _, size: self.part(size, piece)), (None,) * len(makes))
        size = next(size for size in makes if size)
        wanted = [needed[name] for name, cut in zip(op.outputs, way.outputs) if cut and name in needed]
        made = wanted[0] if wanted else self.part(size, piece)
        for other in wanted:
            made = hull(made, other)
        slide = way.slide
        if slide:
            inputs = _each(reads, lambda place, _: slide.reads(made) if place == 0 else made)
        else:
            made = widened(made, grain(size, (each for each in reads if each)), size)
            inputs = _each(reads, lambda _, each: scaled(made, size, each))
        return Cut(inputs, _each(makes, lambda _, __: made))

    def _along(self, names: Sequence[str], cuts: Sequence[AlongAxis | None]) -> list[int]:
        """The size of each operand along its axis; 0 for one that is not cut."""
        shapes = self.links.graph.values
        return [shapes[name].shape[cut.axis] if cut else 0 for name, cut in zip(names, cuts)]


def _each(sizes: Sequence[int], part: Callable[[int, int], Range]) -> tuple[Range | None, ...]:
    """The range of each operand that is cut, by its place and size."""
    return tuple(part(place, size) if size else None for place, size in enumerate(sizes))


def _size(links: Links, op: Op, way: Way) -> int:
    """Of the axis along which an op is cut."""
    pairs = (*zip(op.outputs, way.outputs), *zip(op.inputs, way.inputs))
    return next(links.graph.values[name].shape[cut.axis] for name, cut in pairs if name and cut is not None)
