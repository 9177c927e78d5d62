"""From ways found by the search backwards to an order of computes: each way is gone forwards, and what it makes of
nothing is made by the way of that.

What is not needed for the moment stays in memory as long as there is room, so that less is made again; a way that finds
something there already leaves its making out.

Invariant: a node runs when all that it reads is in memory; what the order needs and costs is for `measure` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from solvers.pebbles.copies import Copies, bits
from solvers.pebbles.reach import BackwardStep
from solvers.problem import RESIDENT

_MOST = 100  # computes for each node


@dataclass(slots=True)
class _Going:
    """How far a way is gone; `beside`: values that are held all the while."""

    way: tuple[BackwardStep, ...]
    beside: frozenset[int]
    at: int = 0


class Making:
    """Makes an order within `budget` bytes. `ways`: for each node, how what it reads gets into memory."""

    def __init__(self, copies: Copies, ways: Mapping[int, tuple[BackwardStep, ...]], budget: int) -> None:
        self.copies = copies
        self.problem = copies.problem
        self.ways = ways
        self.room = budget - self.problem.resident
        blocks = copies.blocks
        self.bytes = [0 if root == RESIDENT else blocks.floor[v] for v, root in enumerate(blocks.root)]
        self.lasting = {v for v in range(copies.count) if not copies.named >> v & 1}  # those that no set names
        self.there: dict[int, int] = {}  # values in memory, and when each was last touched
        self.used = 0
        self.order: list[int] = []

    def run(self, last: tuple[BackwardStep, ...]) -> list[int] | None:
        """First what no output needs, then the way to the end; None if that takes too many computes."""
        problem, needed = self.problem, 0
        for output in problem.outputs:
            needed |= self.copies.needed[self.copies.writer[output]]
        for index in range(len(problem.nodes)):
            if not needed >> index & 1 and not self.go(self.whole(index)):
                return None
        if not self.go(last):
            return None
        for output in problem.outputs:  # those that no set names
            if output not in self.there and not self.go(self.whole(self.copies.writer[output]), self.kept()):
                return None
        ran = set(self.order)
        for index in range(len(problem.nodes)):
            if index not in ran and not self.go(self.whole(index), self.kept()):
                return None
        return self.order

    def kept(self) -> frozenset[int]:
        """The outputs that are there."""
        return frozenset(self.problem.outputs) & self.there.keys()

    def whole(self, index: int) -> tuple[BackwardStep, ...]:
        """What a node reads, one after the other if no way is known, and the node itself."""
        reads, way = self.copies.reads[index], self.ways.get(index)
        return *(tuple(self.plainly(reads)) if way is None else way), BackwardStep(reads, index, -1)

    def plainly(self, reads: int) -> Iterator[BackwardStep]:
        held = 0
        for bit in bits(reads):
            yield BackwardStep(held, None, bit)
            held |= 1 << bit

    def go(self, way: tuple[BackwardStep, ...], beside: frozenset[int] = frozenset()) -> bool:
        going = [_Going(way, beside)]
        while going and len(self.order) <= _MOST * len(self.problem.nodes):
            here = going[-1]
            if here.at == len(here.way):
                going.pop()
                continue
            step = here.way[here.at]
            beside = here.beside.union(map(self.copies.value, bits(step.held)))
            wanted = (step.value,) if step.node is None else self.problem.nodes[step.node].reads
            missing = next((value for value in wanted if value not in self.there), None)
            if step.node is not None and self.made(here, step.node):
                here.at += 1
            elif missing is not None:
                going.append(_Going(self.whole(self.copies.writer[missing]), beside))
            else:
                here.at += 1
                if step.node is not None:
                    self.compute(step.node, beside)
        return not going

    def made(self, here: _Going, index: int) -> bool:
        """Whether all that is wanted of a node is there already."""
        if here.at + 1 == len(here.way):
            return False
        following = set(map(self.copies.value, bits(here.way[here.at + 1].held & self.copies.writes[index])))
        return following <= self.there.keys() if following else False

    def compute(self, index: int, beside: frozenset[int]) -> None:
        node = self.problem.nodes[index]
        now = len(self.order)
        room = self.room - node.workspace - sum(self.bytes[write] for write in node.writes if write not in self.there)
        if self.used > room:
            self.evict(room, beside.union(node.reads, node.writes))
        self.order.append(index)
        for write in node.writes:
            self.used += 0 if write in self.there else self.bytes[write]
        self.there.update(dict.fromkeys((*node.reads, *node.writes), now))

    def evict(self, room: int, wanted: frozenset[int]) -> None:
        """What was not touched for longest goes first."""
        for value in sorted(self.there.keys() - wanted - self.lasting, key=self.there.__getitem__):
            if self.used <= room:
                return
            self.used -= self.bytes[value]
            del self.there[value]
