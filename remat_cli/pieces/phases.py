"""When each phase of a region runs: the ops of a region up to a value that is waited for whole, and what comes after.

Invariant: all that a phase reads of other ops comes before its place, so that it can run piece by piece from there.
"""

from __future__ import annotations

from collections.abc import Iterator

from remat_cli.model.graph import Op
from remat_cli.pieces.cutting import Cutting


def positions(cutting: Cutting) -> dict[str, tuple[float, float]]:
    """Of each op of the region: its phase's place among the graph's ops, and the number of the phase."""
    return _Phases(cutting).positions()


class _Phases:
    def __init__(self, cutting: Cutting) -> None:
        self.cutting, self.ways = cutting, cutting.ways
        self.ops, self.writer = cutting.links.graph.ops, cutting.links.writer
        self.phase = self._phases()

    def _phases(self) -> dict[str, int]:
        """How many joins or sums of the region lie behind each op of the graph, at most.

        An op of the region that stands after the beginning of a phase belongs to it, though it could run earlier.
        """
        phase: dict[str, int] = {}
        latest = 0
        for op in self.ops:
            behind = [phase[maker.name] + waits for maker, waits in self._makers(op)]
            phase[op.name] = max(behind, default=0)
            if op.name in self.ways:
                latest = phase[op.name] = max(latest, phase[op.name])
        return phase

    def _makers(self, op: Op) -> Iterator[tuple[Op, bool]]:
        """The ops that make what it reads, and whether it waits for all of their pieces."""
        cuts = self.ways[op.name].inputs if op.name in self.ways else ()
        for place, name in enumerate((*op.inputs, *op.captures)):
            if maker := self.writer.get(name):
                piecewise = place < len(cuts) and cuts[place] is not None
                yield maker, maker.name in self.ways and not (piecewise and name in self.cutting.along)

    def positions(self) -> dict[str, tuple[float, float]]:
        place = {op.name: index for index, op in enumerate(self.ops)}
        began: dict[int, float] = {}
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
        return {op.name: (began[self.phase[op.name]] + 0.5, self.phase[op.name]) for op in self.cutting.ops}
