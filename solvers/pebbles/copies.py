"""Sets of copies that are in memory together, as the loop in C++ has them: tables of what can be held.

A bit is a copy of a value, or the last copy of an output, which has memory of its own. The smallest
values can be left out of all sets: that asks for no more memory.

Invariant: `copies.hpp` says of a set no more bytes than any order takes that holds those copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.orders.arrays import NO_VIEW, Arrays, Ints, arrays_of, ints, rows
from solvers.orders.blocks import Blocks
from solvers.problem import RESIDENT, Problem

_NONE = -1
_WORD = 64


class Tables(NamedTuple):
    """What `copies.hpp` says of each of them, field for field."""

    problem: Arrays
    value: Ints
    writer: Ints
    bytes: Ints
    last: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    ordinary_bit: Ints
    last_bit: Ints
    reads_at: Ints
    reads: Ints
    writes_at: Ints
    writes: Ints
    plain: Ints
    weight: Ints
    base: Ints
    root: Ints
    floor: Ints
    needed: NDArray[np.int64]


class Copies:
    """The copies of one problem. Values of at most `ignored` bytes are in no set."""

    def __init__(self, problem: Problem, ignored: int = 0) -> None:
        self.problem = problem
        self.blocks = blocks = Blocks(problem)
        self.writer = problem.writers()
        roots = blocks.root
        self.ordinary = [v for v, root in enumerate(roots) if root != RESIDENT and blocks.floor[v] > ignored]
        self.last = [v for v in dict.fromkeys(sorted(problem.outputs)) if problem.sizes[v] > ignored]
        self.value = [*self.ordinary, *self.last]  # of each bit
        self.ordinary_bit = dict(zip(self.ordinary, range(len(self.ordinary)), strict=True))
        self.last_bit = dict(zip(self.last, range(len(self.ordinary), len(self.value)), strict=True))
        self.tables = self._tables()

    @property
    def outputs(self) -> list[int]:
        """The bits that are held at the end."""
        return [*self.last_bit.values()]

    def reads(self, index: int) -> list[int]:
        """The bits that a node reads."""
        return sorted({self.ordinary_bit[v] for v in self.problem.nodes[index].reads if v in self.ordinary_bit})

    def writes(self, index: int) -> list[int]:
        """The bits that a node makes."""
        writes = self.problem.nodes[index].writes
        return sorted(bits[v] for bits in (self.ordinary_bit, self.last_bit) for v in writes if v in bits)

    def _tables(self) -> Tables:
        problem, blocks, value = self.problem, self.blocks, self.value
        members = Counter(blocks.root)
        shared = [blocks.root[v] == RESIDENT or members[blocks.root[v]] > 1 for v in value]
        count = range(len(problem.nodes))
        reads_at, reads = rows([self.reads(index) for index in count])
        writes_at, writes = rows([self.writes(index) for index in count])
        base = [blocks.base.get(v) for v in range(len(problem.sizes))]
        return Tables(
            problem=arrays_of(problem),
            value=ints(value),
            writer=ints([self.writer[v] for v in value]),
            bytes=ints([0 if own else problem.sizes[v] for v, own in zip(value, shared, strict=True)]),
            last=np.arange(len(value)) >= len(self.ordinary),
            shared=np.array(shared, np.bool_),
            ordinary_bit=ints([self.ordinary_bit.get(v, _NONE) for v in range(len(problem.sizes))]),
            last_bit=ints([self.last_bit.get(v, _NONE) for v in range(len(problem.sizes))]),
            reads_at=reads_at,
            reads=reads,
            writes_at=writes_at,
            writes=writes,
            plain=ints([self._plain(index) for index in count]),
            weight=ints(_weights(problem, blocks)),
            base=ints([NO_VIEW if one is None else one for one in base]),
            root=ints(blocks.root),
            floor=ints(blocks.floor),
            needed=_words(problem, self.writer),
        )

    def _plain(self, index: int) -> int:
        """Bytes that a node's writes take, whatever is held; -1 if that depends."""
        problem, node = self.problem, self.problem.nodes[index]
        if all(self.blocks.owns(node, write) and write not in problem.optional for write in node.writes):
            return sum(problem.sizes[write] for write in node.writes)
        return _NONE


def needed(problem: Problem, writer: Sequence[int]) -> list[int]:
    """The nodes that each one needs, itself included, as the bits of a number."""
    found: list[int] = []
    for index, node in enumerate(problem.nodes):
        found.append(1 << index)
        for value in node.reads:
            found[index] |= found[writer[value]]
    return found


def _words(problem: Problem, writer: Sequence[int]) -> NDArray[np.int64]:
    width = max(1, (len(problem.nodes) + _WORD - 1) // _WORD)
    packed = b"".join(one.to_bytes(width * 8, "little") for one in needed(problem, writer))
    return np.frombuffer(packed, np.dtype("<i8")).astype(np.int64).reshape(-1, width)


def _weights(problem: Problem, blocks: Blocks) -> list[int]:
    """What it can take at most to hold what a node reads for longer: a write that took its place takes its own then."""
    most = [1] * len(problem.sizes)
    for node in problem.nodes:
        places = [read for write in node.writes for read in blocks.places(node, write)]
        for read in set(places):
            most[read] = max(most[read], places.count(read))
    return [sum(most[read] * problem.sizes[read] for read in set(node.reads)) for node in problem.nodes]
