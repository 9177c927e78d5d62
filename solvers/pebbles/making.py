"""From ways found by the search backwards to an order of computes: each way is gone forwards, and what it makes of
nothing is made by the way of that.

What is not needed for the moment stays in memory as long as there is room, so that less is made again; a way that finds
something there already leaves its making out.

Invariant: a node runs when all that it reads is in memory; what the order needs and costs is for `measure` to say.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from solvers.pebbles.copies import Copies, needed
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
        self.lasting = set(range(len(blocks.root))).difference(copies.value)  # those that no set names
        self.readers = self.problem.readers()
        self.there: set[int] = set()  # values in memory
        self.untouched: OrderedDict[int, None] = OrderedDict()  # what may go, touched last at the end
        self.used = 0
        self.order: list[int] = []
        self.ran: set[int] = set()

    def run(self, last: tuple[BackwardStep, ...]) -> list[int] | None:
        """First what no output needs or no set names, then the way to the end; None if that takes too many computes."""
        problem, wanted = self.problem, 0
        nodes = needed(problem, self.copies.writer)
        for output in problem.outputs:
            wanted |= nodes[self.copies.writer[output]]
        for index in range(len(problem.nodes)):
            apart = not wanted >> index & 1 or self.lasting.issuperset(problem.nodes[index].writes)
            if apart and index not in self.ran and not self.go(self.whole(index)):
                return None
        if not self.go(last):
            return None
        for output in problem.outputs:  # those that no set names
            if output not in self.there and not self.go(self.whole(self.copies.writer[output]), self.kept()):
                return None
        for index in range(len(problem.nodes)):
            if index not in self.ran and not self.go(self.whole(index), self.kept()):
                return None
        return self.order

    def kept(self) -> frozenset[int]:
        """The outputs that are there."""
        return frozenset(self.problem.outputs) & self.there

    def whole(self, index: int) -> tuple[BackwardStep, ...]:
        """What a node reads, one after the other if no way is known, and the node itself."""
        reads, way = frozenset(self.copies.value[bit] for bit in self.copies.reads(index)), self.ways.get(index)
        return *(tuple(self.plainly(reads)) if way is None else way), BackwardStep(reads, index, -1)

    def plainly(self, reads: frozenset[int]) -> Iterator[BackwardStep]:
        held: frozenset[int] = frozenset()
        for value in sorted(reads):
            yield BackwardStep(held, None, value)
            held |= {value}

    def go(self, way: tuple[BackwardStep, ...], beside: frozenset[int] = frozenset()) -> bool:
        going = [_Going(way, beside)]
        while going and len(self.order) <= _MOST * len(self.problem.nodes):
            here = going[-1]
            if here.at == len(here.way):
                going.pop()
                continue
            step = here.way[here.at]
            beside = here.beside | step.held
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
        following = here.way[here.at + 1].held.intersection(self.problem.nodes[index].writes)
        return following <= self.there if following else False

    def compute(self, index: int, beside: frozenset[int]) -> None:
        node = self.problem.nodes[index]
        room = self.room - node.workspace - sum(self.bytes[write] for write in node.writes if write not in self.there)
        if self.used > room:
            self.evict(room, beside.union(node.reads, node.writes))
        self.order.append(index)
        self.ran.add(index)
        for write in node.writes:
            self.used += 0 if write in self.there else self.bytes[write]
        self.there.update(node.writes)
        for value in (*node.reads, *node.writes):
            if value not in self.lasting:
                self.untouched[value] = None
                self.untouched.move_to_end(value)
        for reader in self.soon(node.writes):
            self.compute(reader, beside.union(node.writes))

    def soon(self, values: Iterable[int]) -> list[int]:
        """The nodes that can run now and make what no set names for the first time: no way says when."""
        nodes = self.problem.nodes
        readers = dict.fromkeys(reader for value in values for reader in self.readers[value])
        return [
            reader
            for reader in readers
            if self.lasting.issuperset(nodes[reader].writes)
            and self.there.isdisjoint(nodes[reader].writes)
            and self.there.issuperset(nodes[reader].reads)
        ]

    def evict(self, room: int, wanted: frozenset[int]) -> None:
        """What was not touched for longest goes first."""
        gone: list[int] = []
        for value in self.untouched:
            if self.used <= room:
                break
            if value not in wanted:
                self.used -= self.bytes[value]
                gone.append(value)
        for value in gone:
            del self.untouched[value]
        self.there.difference_update(gone)
