"""When each phase of a region runs: the ops of a region up to a value that is waited for whole, and what comes after.

Invariant: all that a phase reads of other ops comes before its place, so that it can run piece by piece from there.
Parts of a region that share no piece have phases of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from remat_cli.model.graph import Op
from remat_cli.pieces.cutting import Cutting

Phase = tuple[int, int]  # the part of the region, by the place of its first op, and the number of the phase


def positions(cutting: Cutting) -> dict[str, tuple[float, float, float]]:
    """Of each op of the region: its phase's place among the graph's ops, and the phase."""
    return _Phases(cutting).positions()


class _Phases:
    def __init__(self, cutting: Cutting) -> None:
        self.cutting, self.ways = cutting, cutting.ways
        self.ops, self.writer = cutting.links.graph.ops, cutting.links.writer
        self.part = self._parts()
        self.phase = self._phases()

    def _parts(self) -> dict[str, int]:
        """The part of each op of the region."""
        place = {op.name: index for index, op in enumerate(self.ops)}
        root = {op.name: op.name for op in self.cutting.ops}

        def find(name: str) -> str:
            while root[name] != name:
                root[name] = name = root[root[name]]
            return name

        for op in self.cutting.ops:
            for maker, waits in self._makers(op):
                if maker.name in root and not waits:
                    one, other = sorted((find(maker.name), find(op.name)), key=place.__getitem__)
                    root[other] = one
        return {name: place[find(name)] for name in root}

    def _phases(self) -> dict[str, Phase]:
        """How many joins or sums of the region lie behind each of its ops, at most.

        An op that stands after the beginning of a phase of its part belongs to it, though it could run earlier.
        """
        behind: dict[str, int] = {}
        latest: dict[int, int] = {}
        for op in self.ops:
            behind[op.name] = max((behind[maker.name] + waits for maker, waits in self._makers(op)), default=0)
            if op.name in self.ways:
                part = self.part[op.name]
                latest[part] = behind[op.name] = max(latest.get(part, 0), behind[op.name])
        return {op.name: (self.part[op.name], behind[op.name]) for op in self.cutting.ops}

    def _makers(self, op: Op) -> Iterator[tuple[Op, bool]]:
        """The ops that make what it reads, and whether it waits for all of their pieces."""
        cuts = self.ways[op.name].inputs if op.name in self.ways else ()
        for place, name in enumerate((*op.inputs, *op.captures)):
            if maker := self.writer.get(name):
                piecewise = place < len(cuts) and cuts[place] is not None
                yield maker, maker.name in self.ways and not (piecewise and name in self.cutting.along)

    def positions(self) -> dict[str, tuple[float, float, float]]:
        place = {op.name: index for index, op in enumerate(self.ops)}
        began: dict[Phase, float] = {}
        for op in self.cutting.ops:
            began.setdefault(self.phase[op.name], place[op.name])

        def at(op: Op) -> float:
            return began[self.phase[op.name]] if op.name in self.ways else place[op.name]

        ready = {op.name: at(op) for op in self.ops}
        changed = True
        while changed:
            changed = False
            for op in self.ops:
                behind = max((ready[maker.name] for maker, _ in self._makers(op)), default=-1.0)
                if op.name in self.ways and behind > began[self.phase[op.name]]:
                    began[self.phase[op.name]], changed = behind, True
                ready[op.name] = max(at(op), behind)
        return {op.name: (began[self.phase[op.name]] + 0.5, *self.phase[op.name]) for op in self.cutting.ops}
