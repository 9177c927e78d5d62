"""The size of the arena that a plan needs: free memory in pieces is less useful than free memory in one.

Invariant: never less than the plan's peak. The arena is a single region. Each request takes the smallest free chunk
that holds it, the lowest of equals, and splits off what it does not need. A freed chunk joins its free neighbours. That
is ONNX Runtime's best-fit-with-coalescing arena, as `docs/explanation/promises.md` sets it up for a hard cap.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import Node, Problem

ALIGNMENT = 256  # the arena hands out multiples of this


class Arena:
    """One region of `size` bytes; chunks are known by their address."""

    def __init__(self, size: int) -> None:
        self.free = [(size, 0)] if size else []  # (size, address), sorted
        self.starts = {0: size} if size else {}  # free chunks: address -> size
        self.ends = {size: 0} if size else {}  # free chunks: end -> address
        self.used: dict[int, int] = {}

    def take(self, size: int) -> int | None:
        """The address of a new chunk, or None if no free chunk is large enough."""
        place = bisect_left(self.free, (size, 0))
        if place == len(self.free):
            return None
        found, address = self.free.pop(place)
        del self.starts[address], self.ends[address + found]
        if found > size:
            self._put(address + size, found - size)
        self.used[address] = size
        return address

    def give_back(self, address: int) -> None:
        size = self.used.pop(address)
        if address in self.ends:
            before = self.ends[address]
            size += self._drop(before)
            address = before
        if address + size in self.starts:
            size += self._drop(address + size)
        self._put(address, size)

    def _put(self, address: int, size: int) -> None:
        insort(self.free, (size, address))
        self.starts[address] = size
        self.ends[address + size] = address

    def _drop(self, address: int) -> int:
        size = self.starts.pop(address)
        del self.ends[address + size]
        self.free.pop(bisect_left(self.free, (size, address)))
        return size


def fits(problem: Problem, plan: Plan, room: int) -> bool:
    """Whether the plan runs in an arena of `room` bytes, resident things not among them."""
    return stuck_at(problem, plan, room) is None


def stuck_at(problem: Problem, plan: Plan, room: int) -> int | None:
    """The compute for which an arena of `room` bytes has no chunk large enough; None if the plan runs to its end."""
    region = Arena(room // ALIGNMENT * ALIGNMENT)
    block: dict[int, int] = {}  # register -> the register whose memory it lives in
    holders: dict[int, int] = {}
    address: dict[int, int] = {}  # register with memory of its own -> its chunk
    waiting: list[Allocate] = []  # allocations for the next compute
    for place, statement in enumerate(plan.statements):
        match statement:
            case Allocate(_, register, _, shares):
                block[register] = register if shares is None else block[shares]
                holders[block[register]] = holders.get(block[register], 0) + 1
                waiting.append(statement)
            case Compute(node):
                if not _run(region, problem.nodes[node], waiting, address):
                    return place
                waiting = []
            case Deallocate(register):
                owner = block.pop(register)
                holders[owner] -= 1
                if not holders[owner] and owner in address:
                    region.give_back(address.pop(owner))
    return None


def _run(region: Arena, node: Node, waiting: Sequence[Allocate], address: dict[int, int]) -> bool:
    """Give the node's results their places, and its workspace for as long as it runs; False if there is no room."""
    late = () if node.early or not node.workspace else (node.workspace,)
    scratch = [region.take(rounded(size)) for size in node.early]
    for asked in waiting:
        if asked.bytes:
            place = region.take(rounded(asked.bytes))
            if place is None:
                return False
            address[asked.register] = place
    scratch += [region.take(rounded(size)) for size in late]
    for chunk in scratch:
        if chunk is None:
            return False
        region.give_back(chunk)
    return True


def least_arena(problem: Problem, plan: Plan, peak: int) -> int:
    """The smallest arena found to hold the plan, by bisection above its `peak`, resident things included."""
    low = peak - problem.resident
    high = low
    while not fits(problem, plan, high):
        low, high = high + 1, high + high // 8 + ALIGNMENT
    while low < high:
        middle = (low + high) // 2 // ALIGNMENT * ALIGNMENT
        if middle < low:
            break
        if fits(problem, plan, middle):
            high = middle
        else:
            low = middle + 1
    return problem.resident + high


def rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
