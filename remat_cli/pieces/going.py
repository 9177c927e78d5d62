"""The ops of a graph with a region cut, in the order in which they run: that of the whole ones gone in pieces.

Invariant: each op runs once, after all that it reads; slices and joins are made where they are read first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remat_cli.model.graph import Graph, Op
from remat_cli.pieces.blocks import list_blocks, list_parts
from remat_cli.pieces.cutting import Cutting
from remat_cli.pieces.writing import Writer


def written(graph: Graph, cutting: Cutting) -> tuple[list[Op], Writer]:
    """The ops in order, and who wrote those that are new."""
    blocks = list(list_blocks(cutting, graph.ops))
    writer = Writer(graph, cutting, {op.name: number for number, block in enumerate(blocks) for op in block})
    writer.write()
    walk = _Walk(cutting, writer)
    for block in blocks:
        walk.go(block)
    walk.need(graph.outputs)
    return walk.order, writer


class _Walk:
    """`waiting`: by what they make, slices, joins, and ops of the block that are whole, where they have not run."""

    def __init__(self, cutting: Cutting, writer: Writer) -> None:
        self.cutting, self.parts = cutting, writer.parts
        self.waiting = {name: op for op in writer.helpers for name in op.writes}
        self.order: list[Op] = []

    def go(self, block: Sequence[Op]) -> None:
        """Part by part, and one piece through it before the next. What is whole runs at its place at the latest."""
        self.waiting |= {name: op for op in block if op.name not in self.parts for name in op.writes}
        for part in list_parts(self.cutting, block):
            for piece in range(self.cutting.pieces):
                for op in part:
                    if op.name in self.parts:
                        self.run(self.parts[op.name][piece])
                    else:
                        self.need(op.writes)

    def run(self, ops: Iterable[Op]) -> None:
        for op in ops:
            self.need(op.reads)
            self.order.append(op)

    def need(self, values: Iterable[str]) -> None:
        for value in values:
            if op := self.waiting.get(value):
                for name in op.writes:
                    del self.waiting[name]
                self.run([op])
