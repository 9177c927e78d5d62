"""The memory that values surely take, by the fields of `Node` alone.

A copy lies in a block of its own, or in its base's as a view, or in that of a read which ends there. Take the copies
that are held between two computes and lie in one block. They are views of each other, down to the value that the block
was made for. That is a value that is no view, or the last copy of an output, which is never made as a view.

Invariant: copies of values with different roots that are held together lie in different blocks, of at least `floor`
bytes each. A copy in an input's or weight's block has the root RESIDENT and is not counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from solvers.problem import RESIDENT, Node, Problem


class BlockMemory:
    def __init__(self, ended: Problem) -> None:
        self.problem = ended
        self.outputs = frozenset(ended.outputs)
        self.root = list(range(len(ended.sizes)))
        self.floor = list(ended.sizes)
        for node in ended.nodes:
            for write in node.writes:
                self._see(write, node.base(write))
        self.most: dict[int, int] = {}  # root -> bytes of the largest block in which values of this root may lie
        for value, root in enumerate(self.root):
            self.most[root] = max(self.most.get(root, 0), self.floor[value])
        self.stuck = [] if not ended.unread_stay else self._never_freed()

    def _see(self, write: int, base: int | None) -> None:
        if base is None:
            return
        below = 0 if base == RESIDENT else self.floor[base]
        self.root[write] = RESIDENT if base == RESIDENT else self.root[base]
        self.floor[write] = min(below, self.problem.sizes[write]) if write in self.outputs else below

    def _never_freed(self) -> list[int]:
        """Values of which every copy stays: they have memory of their own, nobody reads them, and they are never left
        out."""
        read = {value for node in self.problem.nodes for value in node.reads}
        return [
            write
            for node in self.problem.nodes
            for write in node.writes
            if write not in read and write not in self.problem.optional and self.owns(node, write)
        ]

    def places(self, node: Node, write: int) -> list[int]:
        """The reads whose place the write may take."""
        return [read for read in node.may_overwrite(write, self.problem.sizes) if self.root[read] != RESIDENT]

    def owns(self, node: Node, write: int) -> bool:
        """Whether every copy has memory of its own."""
        return node.base(write) is None and not self.places(node, write)

    def held(self, values: Iterable[int]) -> int:
        """Bytes of these values while they are held together."""
        blocks: dict[int, int] = {}
        for value in values:
            if self.root[value] != RESIDENT:
                blocks[self.root[value]] = max(blocks.get(self.root[value], 0), self.floor[value])
        return sum(blocks.values())

    def written(self, node: Node, held: Collection[int] = (), last: Collection[int] = ()) -> int:
        """Bytes that the writes take for themselves while the node runs, if these copies are held afterwards.

        `last`: those among them that are the last copies of outputs.
        """
        sizes = self.problem.sizes
        return sum(sizes[write] for write in node.writes if write in last or self._takes(node, write, held, last))

    def _takes(self, node: Node, write: int, held: Collection[int], last: Collection[int]) -> bool:
        left_out = write in self.problem.optional and write not in held
        kept = all(read in held or read in last for read in self.places(node, write))
        return node.base(write) is None and not left_out and kept
