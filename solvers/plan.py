"""Plans, and `lower`: an order of computes made into the one plan it implies.

Invariant: frees are forced. A copy is freed right after its last use before its value is next produced; what the
runtime shares (views, overwritten reads) and never frees (copies with memory of their own that nobody reads) is written
into the plan. An update of an input waits for the last compute that reads the input as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from solvers.problem import RESIDENT, Node, Problem
from solvers.updates import in_time


class Allocate(NamedTuple):
    """Give `value` the fresh register `register`; with `shares`, in the memory of that register and at no cost."""

    value: int
    register: int
    bytes: int
    shares: int | None = None


class Compute(NamedTuple):
    """Run `node`, each write into its register; None for an optional write that is left out."""

    node: int
    registers: tuple[int | None, ...]


class Deallocate(NamedTuple):
    register: int


Statement = Allocate | Compute | Deallocate


@dataclass(frozen=True, slots=True)
class Plan:
    statements: tuple[Statement, ...]

    def order(self) -> tuple[int, ...]:
        return tuple(s.node for s in self.statements if isinstance(s, Compute))


class IllegalOrder(ValueError):
    """An order that reads what was never produced, or leaves an output unproduced."""


def lower(problem: Problem, order: Sequence[int]) -> Plan:
    """The plan of an order. Raises IllegalOrder where something is read before it is produced."""
    order = in_time(problem, order)
    last_use, final = _lifetimes(problem, order)
    builder = _Builder(problem)
    for step, index in enumerate(order):
        builder.compute(index, last_use[step], final[step])
    return Plan(tuple(builder.statements))


def _lifetimes(problem: Problem, order: Sequence[int]) -> tuple[list[set[int]], list[set[int]]]:
    """For each step: the values whose copy ends there, and the writes that are the outputs' last copies."""
    needed = set(problem.outputs)
    unfinished = set(problem.outputs)
    ends: list[set[int]] = []
    final: list[set[int]] = []
    for index in reversed(order):
        node = problem.nodes[index]
        ends.append({v for v in (*node.reads, *node.writes) if v not in needed})
        final.append(unfinished.intersection(node.writes))
        unfinished.difference_update(node.writes)
        needed.difference_update(node.writes)
        needed.update(node.reads)
    if needed:
        raise IllegalOrder(f"value {min(needed)} is needed but was never produced before that")
    return ends[::-1], final[::-1]


class _Builder:
    """Walks forward, handing out registers and grouping those that share one block of memory."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.statements: list[Statement] = []
        self.register: dict[int, int] = {}  # value -> its live copy
        self.block: dict[int, int] = {}  # register -> the block it lives in
        self.living: dict[int, int] = {}  # block -> live registers in it
        self.bytes: dict[int, int] = {}  # block -> its size
        self.count = 0

    def compute(self, index: int, ends: set[int], final: set[int]) -> None:
        node = self.problem.nodes[index]
        reads = set(node.reads)
        unread = [w for w in node.writes if w in ends]
        skipped = {w for w in unread if w in self.problem.optional}
        old = {r: self.register[r] for r in reads}
        fresh: dict[int, int | None] = {
            write: None if write in skipped else self._allocate(node, write, old, ends, write in final)
            for write in node.writes
        }
        self.statements.append(Compute(index, tuple(fresh[w] for w in node.writes)))
        for value in sorted(reads & ends):
            self._free(old[value])
        for write, new in fresh.items():
            if new is None:
                continue
            self.register[write] = new
            if write in ends and not (self.problem.unread_stay and self.block[new] == new):
                self._free(new)

    def _allocate(self, node: Node, write: int, old: dict[int, int], ends: set[int], final: bool) -> int:
        self.count += 1
        new = self.count
        base = None if final else node.base(write)  # a caller is always handed memory that is an output's own
        shares = old[base] if base is not None and base != RESIDENT else None
        if base is None and not final:
            shares = self._overwritten(node, write, old, ends)
        size = self.problem.sizes[write] if shares is None and base != RESIDENT else 0
        if shares is None:
            self.block[new], self.bytes[new] = new, size
            self.living[new] = 1 if base != RESIDENT else 2  # the input or weight itself, which nothing may overwrite
        else:
            self.block[new] = self.block[shares]
            self.living[self.block[new]] += 1
        self.statements.append(Allocate(write, new, size, shares))
        return new

    def _overwritten(self, node: Node, write: int, old: dict[int, int], ends: set[int]) -> int | None:
        """The register of a read that ends here, alone in memory that is just as large."""
        for read in node.may_overwrite(write, self.problem.sizes):
            block = self.block[old[read]]
            if read in ends and self.living[block] == 1 and self.bytes[block] == self.problem.sizes[write]:
                return old[read]
        return None

    def _free(self, register: int) -> None:
        self.statements.append(Deallocate(register))
        self.living[self.block[register]] -= 1
