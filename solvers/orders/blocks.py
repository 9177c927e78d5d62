"""How values that are held together share memory: the one definition that bounds and cuts follow.

A copy lives in a block of its own or, as a view, in its base's block for as long as either is held. So a value's block
has the bytes of the value at the root of its chain of bases. If the chain passes an output whose last copy it is, the
block has that output's bytes. It has none if the root is an input or a weight.

Invariant: every statement about memory holds for every order, repeats and any order of first computes included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from functools import cached_property

from solvers.problem import RESIDENT, Node, Problem


class Blocks:
    """Lower bounds on what values take together. `last`: outputs whose last copies are meant."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.base = {write: node.base(write) for node in problem.nodes for write in node.writes}
        self.shared = any(base is not None for base in self.base.values())
        self.root = list(range(len(problem.sizes)))
        self.floor = list(problem.sizes)  # the least bytes of the block that a copy of each value lives in
        for value, base in self.base.items():  # a base comes before its views
            if base is None:
                continue
            self.root[value] = RESIDENT if base == RESIDENT else self.root[base]
            below = 0 if base == RESIDENT else self.floor[base]
            self.floor[value] = min(below, problem.sizes[value]) if value in self.outputs else below

    @cached_property
    def outputs(self) -> frozenset[int]:
        return frozenset(self.problem.outputs)

    def held(self, values: Set[int], last: Set[int] = frozenset()) -> int:
        """The least bytes in which these values can be held at once, besides the last copies of those outputs."""
        sizes = self.problem.sizes
        own = sum(sizes[value] for value in last)
        if not self.shared:
            return own + sum(sizes[value] for value in {*values})
        blocks: dict[int, int] = {}  # root -> bytes
        for value in values:
            if self.root[value] == RESIDENT or (last and self._lives_in(value, last)):
                continue
            blocks[self.root[value]] = max(blocks.get(self.root[value], 0), self.floor[value])
        return own + sum(blocks.values())

    def chain(self, value: int) -> Iterator[int]:
        """The value, its base, that one's base, and so on."""
        at: int | None = value
        while at is not None and at != RESIDENT:
            yield at
            at = self.base[at]

    def _lives_in(self, value: int, last: Collection[int]) -> bool:
        """Whether it may be a view of one of these outputs' last copies."""
        return any(at in last for at in self.chain(value))

    def places(self, node: Node, write: int) -> list[int]:
        """The reads whose place the write may take."""
        return [r for r in node.may_overwrite(write, self.problem.sizes) if self.root[r] != RESIDENT]

    def owns(self, node: Node, write: int) -> bool:
        """Whether every copy of the write has memory of its own, if it is not left out."""
        return self.base[write] is None and not self.places(node, write)

    def taken(self, node: Node, stays: Collection[int] = (), last: Collection[int] = ()) -> list[int]:
        """The writes that surely take memory of their own while the node runs, if these copies are held afterwards."""
        return [write for write in node.writes if write in last or self._takes(node, write, stays, last)]

    def _takes(self, node: Node, write: int, stays: Collection[int], last: Collection[int]) -> bool:
        left_out = write in self.problem.optional and write not in stays
        kept = all(read in stays or read in last for read in self.places(node, write))
        return self.base[write] is None and not left_out and kept
