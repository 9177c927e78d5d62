"""Converts a plan to the allocations that the strict session makes for it, one after the other.

Invariant: the k-th lifetime is the k-th request that the runtime makes of its allocator, with its bytes. A value that
shares memory or is empty makes no request. Time is counted in requests, so a lifetime's `start` is its own number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvers._loops import blocks_taken
from solvers.orders.arrays import Arrays, Ints, arrays_of, rows
from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import Node, Problem
from solvers.updates import HeldUpdates

ALIGNMENT = 64  # in bytes: the alignment that kernels expect of a tensor


@dataclass(frozen=True, slots=True)
class Lifetime:
    """`bytes` held from the moment `start` until just before the moment `end`."""

    start: int
    end: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Requests:
    """`outputs`: the numbers of the requests that the caller receives; `scratch`: the numbers of workspace requests."""

    lifetimes: tuple[Lifetime, ...]
    outputs: tuple[int, ...]
    scratch: tuple[int, ...] = ()


class Columns(NamedTuple):
    """Lifetimes as columns: the k-th is in the k-th row of each."""

    start: Ints
    end: Ints
    bytes: Ints

    def of(self, rows: Ints) -> Columns:
        return Columns(*(column[rows] for column in self))

    def real(self) -> Ints:
        """The rows of those that take room."""
        return np.flatnonzero((self.bytes > 0) & (self.end > self.start))


def columns(lifetimes: Sequence[Lifetime]) -> Columns:
    table = np.array([(one.start, one.end, one.bytes) for one in lifetimes], np.int64).reshape(-1, 3)
    return Columns(*table.T)


class Requested:
    """The requests of many orders of one problem: those of each order's plan, without the plan."""

    def __init__(self, problem: Problem) -> None:
        self.arrays: Arrays = arrays_of(problem)
        self.updates = HeldUpdates(problem)
        self.early_at, self.early = rows([node.early for node in problem.nodes])
        self.late_at, self.late = rows(
            [(node.workspace,) if node.workspace and not node.early else () for node in problem.nodes]
        )

    def by(self, order: Sequence[int]) -> Columns:
        """A step asks for workspace that comes early, for its writes, and for workspace that comes late."""
        steps = self.updates.in_time(np.asarray(order, np.int64))
        first, held, last = blocks_taken(self.arrays, steps)
        assert len(first), "only orders that can run have requests"
        block_step = np.repeat(np.arange(len(steps)), np.diff(first))[held > 0]
        early_step, early = _of_steps(self.early_at, self.early, steps)
        late_step, late = _of_steps(self.late_at, self.late, steps)
        step = np.concatenate((early_step, block_step, late_step))
        until = np.concatenate((early_step, last[held > 0], late_step))  # the step after which each is let go
        turn = np.argsort(step, kind="stable")
        asked = np.cumsum(np.bincount(step, minlength=len(steps) + 1))  # after each step
        sizes = np.concatenate((early, held[held > 0], late))
        return Columns(np.arange(len(step)), asked[until][turn], sizes[turn])


def _of_steps(at: Ints, items: Ints, steps: Ints) -> tuple[Ints, Ints]:
    """The items of each step's node, in turn, and whose they are."""
    count = np.diff(at)[steps]
    step = np.repeat(np.arange(len(steps)), count)
    place = np.arange(len(step)) - np.repeat(np.cumsum(count) - count, count)
    return step, items[at[steps[step]] + place]


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

    def closed(self) -> tuple[Lifetime, ...]:
        last = len(self.sizes)
        return tuple(Lifetime(k, self.ends.get(k, last), size) for k, size in enumerate(self.sizes))
