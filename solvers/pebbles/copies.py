"""Sets of copies that are in memory together, as the bits of a number, and what a compute makes of them.

Bit v is a copy of value v; bit `count + v` is the last copy of output v, which has memory of its own.

Invariant: whatever copies an order holds, `size` of them and `need` of a compute between them is no more than it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from solvers.orders.blocks import Blocks
from solvers.problem import RESIDENT, Problem


def bits(held: int) -> Iterator[int]:
    """The places of the ones in a number."""
    while held:
        lowest = held & -held
        yield lowest.bit_length() - 1
        held ^= lowest


class Copies:
    """The copies of one problem. Values of at most `ignored` bytes are in no set: that asks for no more memory."""

    def __init__(self, problem: Problem, ignored: int = 0) -> None:
        self.problem = problem
        self.blocks = Blocks(problem)
        self.writer = problem.writers()
        self.count = len(problem.sizes)
        members = Counter(self.blocks.root)
        shared = [v for v, root in enumerate(self.blocks.root) if root == RESIDENT or members[root] > 1]
        apart = set(range(self.count)).difference(shared)
        ordinary = [v for v, root in enumerate(self.blocks.root) if root != RESIDENT and self.blocks.floor[v] > ignored]
        last = [v for v in problem.outputs if problem.sizes[v] > ignored]
        self.named = self._copies(ordinary) | self._copies(last) << self.count
        self.shared = self._both(shared) & self.named
        self.bytes = [problem.sizes[v] if v in apart else 0 for v in range(self.count)] * 2
        self.reads = [self._copies(node.reads) & self.named for node in problem.nodes]
        self.writes = [self._both(node.writes) for node in problem.nodes]
        self.plain = [
            sum(problem.sizes[write] for write in node.writes)
            if all(self.blocks.owns(node, write) and write not in problem.optional for write in node.writes)
            else None
            for node in problem.nodes
        ]  # bytes that the writes take, whatever is held; None if that depends
        self.needed: list[int] = []  # the nodes that each one needs, itself included, as bits
        for index, node in enumerate(problem.nodes):
            self.needed.append(1 << index)
            for value in node.reads:
                self.needed[index] |= self.needed[self.writer[value]]

    @staticmethod
    def _copies(values: Iterable[int]) -> int:
        held = 0
        for value in values:
            held |= 1 << value
        return held

    def _both(self, values: Iterable[int]) -> int:
        held = self._copies(values)
        return held | held << self.count

    def outputs(self) -> int:
        """What is held at the end."""
        return (self._copies(self.problem.outputs) << self.count) & self.named

    def value(self, bit: int) -> int:
        return bit if bit < self.count else bit - self.count

    def nodes(self, held: int) -> set[int]:
        """Those that make these copies."""
        return {self.writer[self.value(bit)] for bit in bits(held)}

    def size(self, held: int) -> int:
        """The least bytes in which these copies can be held at once."""
        total = sum(self.bytes[bit] for bit in bits(held & ~self.shared))
        if held & self.shared:
            total += self.blocks.held(*self._sets(held & self.shared))
        return total

    def _sets(self, held: int) -> tuple[frozenset[int], frozenset[int]]:
        """The values, and the outputs' last copies."""
        here = [*bits(held)]
        ordinary = frozenset(bit for bit in here if bit < self.count)
        return ordinary, frozenset(bit - self.count for bit in here if bit >= self.count)

    def before(self, held: int, size: int, index: int) -> tuple[int, int]:
        """What is held before a node runs if this is held afterwards, and its size; a last copy can be read too."""
        rest = held & ~self.writes[index]
        earlier = rest | self.reads[index] & ~(rest >> self.count)
        if (held | earlier) & self.shared:
            return earlier, self.size(earlier)
        size -= sum(self.bytes[bit] for bit in bits(held & ~earlier))
        return earlier, size + sum(self.bytes[bit] for bit in bits(earlier & ~held))

    def without(self, held: int, size: int, bit: int) -> tuple[int, int]:
        """The same copies but for one, and their size."""
        rest = held & ~(1 << bit)
        return rest, self.size(rest) if self.shared >> bit & 1 else size - self.bytes[bit]

    def need(self, index: int, earlier: int, held: int) -> int:
        """Bytes while a node runs, when copies of this size are held before it, and these afterwards."""
        node, taken = self.problem.nodes[index], self.plain[index]
        if taken is None:
            taken = sum(self.problem.sizes[write] for write in self.blocks.taken(node, *self._sets(held)))
        return self.problem.resident + node.workspace + earlier + taken
