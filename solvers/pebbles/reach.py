"""The least peak with which copies can be brought into memory together, by a search backwards to nothing held.

Of copies that are in memory at once, one was made last: meanwhile the others were held, and what its node reads. So a
state is a set of copies, and a step back takes away what a node writes and asks for what it reads; the peak of a way is
the most that any of its steps needs. Taken in the order of their peaks, states are few, for three reasons:

1. Copies that can be made of nothing beside all others, without a higher peak, need not be held: `alone` says what
   that takes. Whatever reaches the larger set reaches the smaller one.
2. A state that includes one that was looked at at no higher peak is of no use.
3. A copy no smaller than all that its node reads, which no other copy needs, is made last: in any way there, hold what
   was read in its place from then on.

Invariant: `least` holds for every way, repeats and any order of first computes included, whatever `alone` says and
wherever the search is cut short; the way found has the peak `peak` if what `alone` says can be kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.clock import Clock
from solvers.pebbles.copies import Copies, bits

NEVER = 1 << 62  # more than any peak


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """Beside what is `held`, `node` runs; or, if that is None, `value` is made of nothing."""

    held: int
    node: int | None
    value: int


@dataclass(frozen=True, slots=True)
class Reached:
    """`peak`, `way`: of the way found, None if the search was cut short or there is none below what is known."""

    least: int
    peak: int | None
    way: tuple[BackwardStep, ...] | None


class Seen:
    """States that were looked at."""

    def __init__(self, width: int) -> None:
        self.width = (width + 63) // 64
        self.rows: NDArray[np.uint64] = np.zeros((64, self.width), np.uint64)
        self.count = 0

    def within(self, held: int) -> bool:
        """Whether one of them is part of this state; if not, it is added."""
        row = np.frombuffer(held.to_bytes(self.width * 8, "little"), np.dtype("<u8"))
        if bool(np.any(np.all(self.rows[: self.count] & ~row == 0, axis=1))):
            return True
        if self.count == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.rows[self.count] = row
        self.count += 1
        return False


class BackwardSearch:
    """One search for one set. `known`: no way is wanted whose peak is that or more; `states`: looked at, at most."""

    def __init__(self, copies: Copies, alone: list[int], known: int, states: int, clock: Clock) -> None:
        self.copies = copies
        self.alone = alone
        self.known = known
        self.states = states
        self.clock = clock
        self.weight = _weights(copies)
        self.best: dict[int, int] = {}
        self.after: dict[int, tuple[int, int | None, int]] = {}
        self.heap: list[tuple[int, int, int, int]] = []
        self.seen = Seen(2 * copies.count + 1)

    def run(self, wanted: int, at_least: int) -> Reached:
        """`at_least`: a peak below which it does not matter."""
        peak = at_least
        self.best[wanted] = peak
        heapq.heappush(self.heap, (peak, 0, wanted, self.copies.size(wanted)))
        while self.heap:
            peak, _, held, size = heapq.heappop(self.heap)
            if self.best[held] < peak:
                continue
            if self.seen.count >= self.states or self.clock.over():
                return Reached(min(peak, self.known), None, None)
            smaller = self.drop(held, size, peak)
            if smaller is None:
                continue
            if not smaller[0]:
                return Reached(peak, peak, tuple(self.way(wanted)))
            if not self.seen.within(smaller[0]):
                self.expand(*smaller, peak)
        return Reached(self.known, None, None)

    def drop(self, held: int, size: int, peak: int) -> tuple[int, int] | None:
        """The state without what can be made of nothing beside the rest; None if that was met before."""
        for bit in sorted(bits(held), key=lambda bit: -self.copies.bytes[bit]):
            rest, less = self.copies.without(held, size, bit)
            if less + self.alone[bit] <= peak:
                if self.best.get(rest, NEVER) <= peak:
                    return None
                self.best[rest] = peak
                self.after[rest] = held, None, bit
                held, size = rest, less
        return held, size

    def expand(self, held: int, size: int, peak: int) -> None:
        """All steps back, or one if it is the only one worth taking."""
        steps: list[tuple[int, int, int, int | None, int]] = []
        for index in sorted(self.copies.nodes(held)):
            earlier, bytes_ = self.copies.before(held, size, index)
            need = max(peak, self.copies.need(index, bytes_, held))
            if need < self.known:
                steps.append((need, earlier, bytes_, index, -1))
                if need == peak and (not earlier & ~held or self.last(index, held)):
                    steps = steps[-1:]
                    break
        else:
            for bit in bits(held):
                rest, less = self.copies.without(held, size, bit)
                need = max(peak, less + self.alone[bit])
                if need < self.known:
                    steps.append((need, rest, less, None, bit))
        for need, earlier, bytes_, node, bit in steps:
            if need < self.best.get(earlier, NEVER):
                self.best[earlier] = need
                self.after[earlier] = held, node, bit
                heapq.heappush(self.heap, (need, bytes_, earlier, bytes_))

    def last(self, index: int, held: int) -> bool:
        """Whether what a node has made here can as well be made last."""
        copies = self.copies
        made = held & copies.writes[index]
        if made & copies.shared or copies.reads[index] & copies.shared:
            return False
        if self.weight[index] > sum(copies.bytes[bit] for bit in bits(made)):
            return False
        return not any(copies.needed[other] >> index & 1 for other in copies.nodes(held & ~made))

    def way(self, wanted: int) -> Iterator[BackwardStep]:
        held = 0
        while held != wanted:
            after, node, bit = self.after[held]
            yield BackwardStep(held, node, self.copies.value(bit) if node is None else -1)
            held = after


def _weights(copies: Copies) -> list[int]:
    """What it can take at most to hold what a node reads for longer: a write that took its place takes its own then."""
    problem, most = copies.problem, [1] * copies.count
    for node in problem.nodes:
        places = [read for write in node.writes for read in copies.blocks.places(node, write)]
        for read in set(places):
            most[read] = max(most[read], places.count(read))
    return [sum(most[read] * problem.sizes[read] for read in set(node.reads)) for node in problem.nodes]
