"""What a plan requests of its allocator, by its statements alone, and what is held of that: a witness of the compiled
road from an order, which never makes the plan.

Invariant: requests share no code with `Requested` or the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvers.placement.lives import Lives
from solvers.placement.pattern import block_of
from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import Node, Problem


@dataclass(frozen=True, slots=True)
class Requests:
    """`outputs`: the numbers of the requests that the caller receives; `scratch`: the numbers of workspace requests."""

    lifetimes: Lives
    outputs: tuple[int, ...]
    scratch: tuple[int, ...] = ()


def held_later(asked: Requests) -> int:
    """The peak of later runs, for requests in the order of the plan."""
    apart = np.isin(np.arange(len(asked.lifetimes.size)), (*asked.outputs, *asked.scratch))
    return block_of(asked.lifetimes.only(~apart)) + asked.lifetimes.only(apart).most_at_once()


def requests(problem: Problem, plan: Plan) -> Requests:
    """The plan's requests to an allocator, with workspace in its separate blocks."""
    book = _Book()
    wanted = set(problem.outputs)
    newest: dict[int, int] = {}  # output -> the register of its newest copy
    waiting: list[Allocate] = []  # allocations for the next compute
    for statement in plan.statements:
        match statement:
            case Allocate():
                book.hold(statement)
                waiting.append(statement)
            case Compute(node):
                _run(book, problem.nodes[node], waiting)
                newest |= {asked.value: asked.register for asked in waiting if asked.value in wanted}
                waiting = []
            case Deallocate(register):
                book.release(register)
    outputs = tuple(sorted({book.number[r] for r in newest.values() if r in book.number}))
    return Requests(book.closed(), outputs, tuple(book.scratch))


def _run(book: _Book, node: Node, waiting: Sequence[Allocate]) -> None:
    """Request the workspace of a node, for as long as it runs; blocks come before the writes where the node says so."""
    scratch = [book.take(size) for size in node.early]
    for asked in waiting:
        if asked.bytes:
            book.number[asked.register] = book.take(asked.bytes)
    if node.workspace and not node.early:
        scratch.append(book.take(node.workspace))
    for number in scratch:
        book.end(number)
    book.scratch += scratch


class _Book:
    """The requests so far; a block is a register with memory of its own, held by all the registers in it."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.ends: dict[int, int] = {}
        self.block: dict[int, int] = {}
        self.holders: dict[int, int] = {}
        self.number: dict[int, int] = {}  # block -> its request
        self.scratch: list[int] = []

    def hold(self, asked: Allocate) -> None:
        owner = asked.register if asked.shares is None else self.block[asked.shares]
        self.block[asked.register] = owner
        self.holders[owner] = self.holders.get(owner, 0) + 1

    def take(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def end(self, number: int) -> None:
        self.ends[number] = len(self.sizes)

    def release(self, register: int) -> None:
        owner = self.block.pop(register)
        self.holders[owner] -= 1
        if not self.holders[owner] and owner in self.number:
            self.end(self.number[owner])

    def closed(self) -> Lives:
        last = len(self.sizes)
        return Lives.of((k, self.ends.get(k, last), size) for k, size in enumerate(self.sizes))
