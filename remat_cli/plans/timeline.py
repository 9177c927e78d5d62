"""What is in memory during each compute of a plan, block by block: the source of pictures and breakdowns.

Invariant: during each compute the blocks held, the workspace and the problem's `resident` add up to the bytes in use
that `simulate` reports. A block belongs to the value that was written into it, not to its views; a value that
overwrites another owns the block from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class Block:
    """`bytes` of `value` in memory during the computes from `start` to just before `end`."""

    value: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """The computes of a plan in their order, and the memory held while they run. `late`: the ops of the backward
    pass."""

    problem: Problem
    late: frozenset[int]
    order: tuple[int, ...]
    blocks: tuple[Block, ...]

    @cached_property
    def memory(self) -> tuple[int, ...]:
        """Bytes in use during each compute."""
        change = [0] * (len(self.order) + 1)
        for block in self.blocks:
            change[block.start] += block.bytes
            change[block.end] -= block.bytes
        nodes, fixed = self.problem.nodes, self.problem.resident
        held = accumulate(change[:-1])
        return tuple(fixed + now + nodes[node].workspace for now, node in zip(held, self.order, strict=True))

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """The time at which each compute begins, in nanoseconds, and the time at which the last one ends."""
        return tuple(accumulate((self.problem.nodes[node].cost for node in self.order), initial=0))

    @property
    def edges(self) -> Sequence[int]:
        """The same, or the indices of the computes, where none takes any time."""
        return self.begins if self.begins[-1] else range(len(self.order) + 1)

    @cached_property
    def again(self) -> tuple[bool, ...]:
        """Whether each compute is a recomputation. A view takes no time, so making one again does not count."""
        ran: set[int] = set()
        found = []
        for node in self.order:
            found.append(node in ran and not self.problem.nodes[node].views)
            ran.add(node)
        return tuple(found)

    def phase(self, step: int) -> str:
        """The phase of the compute: the forward pass, a recomputation, or the backward pass."""
        if self.again[step]:
            return "recomputed"
        return "backward" if self.order[step] in self.late else "forward"

    @property
    def peak_step(self) -> int:
        """The first compute at which the peak is reached."""
        return max(range(len(self.memory)), key=lambda step: self.memory[step])

    def held(self, step: int) -> list[Block]:
        """What is in memory during one compute, the largest first."""
        found = [block for block in self.blocks if block.start <= step < block.end]
        return sorted(found, key=lambda block: (-block.bytes, block.value, block.start))


def timeline(problem: Problem, plan: Plan, late: Collection[int] | None = None) -> Timeline:
    """The timeline of a plan that is known to be legal. `late` defaults to the problem's own backward ops."""
    if late is None:
        late = [index for index, node in enumerate(problem.nodes) if node.backward]
    return Timeline(problem, frozenset(late), plan.order(), tuple(_blocks(problem, plan)))


@dataclass(slots=True)
class _Place:
    """A block of memory while it is held, with its owners and the steps at which they took it."""

    value: int
    bytes: int
    start: int
    holders: int = 1

    def closed(self, end: int) -> Iterator[Block]:
        if self.bytes and end > self.start:
            yield Block(self.value, self.bytes, self.start, end)


def _blocks(problem: Problem, plan: Plan) -> Iterator[Block]:
    views = {pair for node in problem.nodes for pair in node.views}
    places: dict[int, _Place] = {}  # register -> its block
    values: dict[int, int] = {}
    step = 0
    for statement in plan.statements:
        match statement:
            case Allocate(value, register, size, shares):
                values[register] = value
                if shares is None:
                    places[register] = _Place(value, size, step)
                    continue
                place = places[register] = places[shares]
                place.holders += 1
                if (value, values[shares]) not in views:  # the value overwrites the one that was there
                    yield from place.closed(step)
                    place.value, place.start = value, step
            case Compute():
                step += 1
            case Deallocate(register):
                place = places.pop(register)
                place.holders -= 1
                if not place.holders:
                    yield from place.closed(step)
    for place in {id(place): place for place in places.values()}.values():
        yield from place.closed(step)
