"""Rotor's dynamic program over the segments of a chain, each stage with one or several ways to be run.

C_BP(s, t, m) of the paper (Theorem 3, Algorithm 3): the least time to differentiate stages s..t when a^{s-1} is held,
δ^t is held, and m is the memory beyond a^{s-1}. It is the lesser of

    F_all^s, then (s+1, t) in m - ā^s, then B^s                                  (one such line for each way to run s)
    F_ck^s F_0^{s+1} .. F_0^{s'-1}, then (s', t) in m - a^{s'-1}, then (s, s'-1) in m,  for s' in s+1..t

The table holds the excess over running each stage once in its quickest way. A cut at s' adds at least the forward time
of s..s'-1, so for each s' only those m need a look at which the best excess so far is larger: the table is exact all the
same, and most of it is never touched.

Invariant: rows never increase with m, and an entry is finite exactly where a sequence was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.chains.chain import Op, Step

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ways:
    """For each stage, the ways to run it; way k of stage s is entry start[s] + k. Sizes in slots."""

    start: Ints  # stage -> its first way; one entry more than stages
    time: Floats  # what a way costs beyond the quickest
    keep: Ints  # ā: what it holds from its forward to its backward, its output included
    forward: Ints  # memory beyond the input and δ^t while its forward runs
    backward: Ints  # memory beyond the input while its backward runs, δ^s and δ^{s-1} included


@dataclass(frozen=True, slots=True)
class Segments:
    """What the program needs to know of a chain. Arrays over stages 1..n (and 0)."""

    walk: Floats  # time of F_ck or F_0
    walk_memory: Ints  # their memory beyond the input: a^s + o_f^s
    a: Ints
    delta: Ints
    ways: Ways  # followed by later stages
    last: Ways  # for the last stage of a segment: F_all and B one after the other
    spared: Floats  # what the last stage of a segment saves, as its output is not wanted


@dataclass(frozen=True, slots=True)
class Table:
    segments: Segments
    excess: Floats  # row(s, t) x memory
    memory: int

    def least_memory(self) -> int | None:
        """The least memory in which the whole chain can be differentiated."""
        finite = np.flatnonzero(np.isfinite(self.excess[row(1, len(self.segments.a) - 1)]))
        return int(finite[0]) if finite.size else None

    def whole(self) -> Floats:
        """The excess of the whole chain for each memory."""
        return self.excess[row(1, len(self.segments.a) - 1)]


@njit(cache=True)
def row(first: int, last: int) -> int:
    return last * (last - 1) // 2 + first - 1


def solve_segments(segments: Segments, memory: int) -> Table:
    count = len(segments.a) - 1
    excess = np.full((count * (count + 1) // 2, memory + 1), np.inf)
    ways, last = segments.ways, segments.last
    _fill(
        excess,
        np.cumsum(segments.walk),
        segments.walk_memory,
        segments.a,
        segments.delta,
        segments.spared,
        ways.start,
        ways.time,
        ways.keep,
        ways.forward,
        ways.backward,
        last.start,
        last.time,
        last.forward,
        last.backward,
    )
    return Table(segments, excess, memory)


@njit(cache=True)
def _fill(
    excess: Floats,
    walked: Floats,
    walk_memory: Ints,
    a: Ints,
    delta: Ints,
    spared: Floats,
    start: Ints,
    time: Floats,
    keep: Ints,
    forward: Ints,
    backward: Ints,
    last_start: Ints,
    last_time: Floats,
    last_forward: Ints,
    last_backward: Ints,
) -> None:
    stages = len(a) - 1
    top = excess.shape[1]
    nothing = np.zeros(top)
    for t in range(1, stages + 1):
        for way in range(last_start[t], last_start[t + 1]):
            need = max(delta[t] + last_forward[way], last_backward[way], 0)
            best = excess[row(t, t)]
            for m in range(need, top):
                best[m] = min(best[m], last_time[way])
        inner = 0  # memory of the F_0 after s, beyond a^{s-1}
        for s in range(t - 1, 0, -1):
            if s + 1 < t:
                inner = max(inner, a[s] + walk_memory[s + 1])
            best = excess[row(s, t)]
            after = excess[row(s + 1, t)]
            for way in range(start[s], start[s + 1]):
                need = max(delta[t] + forward[way], backward[way], keep[way])
                if need < top:
                    lower_to(best[need:], time[way], after[need - keep[way] : top - keep[way]], nothing)
            empty = delta[t] + max(walk_memory[s], inner)
            for cut in range(s + 1, t + 1):
                price = walked[cut - 1] - walked[s - 1] - spared[cut - 1]
                held = a[cut - 1]
                end = first_at_most(best, price)
                after_cut = excess[row(cut, t)]
                before_cut = excess[row(s, cut - 1)]
                first = max(empty, held)
                if first < end:
                    lower_to(best[first:end], price, after_cut[first - held : end - held], before_cut[first:end])


@njit(cache=True)
def lower_to(best: Floats, price: float, one: Floats, other: Floats) -> None:
    """best = min(best, price + one + other), over the length of best; written so that it compiles to vectors."""
    for place in range(len(best)):
        value = price + one[place] + other[place]
        best[place] = value if value < best[place] else best[place]


@njit(cache=True)
def first_at_most(falling: Floats, value: float) -> int:
    low, high = 0, len(falling)
    while low < high:
        middle = (low + high) // 2
        if falling[middle] > value:
            low = middle + 1
        else:
            high = middle
    return low


def trace(table: Table, memory: int) -> tuple[Step, ...]:
    """The sequence behind the whole chain's entry for `memory`."""
    steps: list[Step] = []
    todo: list[tuple[int, int, int] | Step] = [(1, len(table.segments.a) - 1, memory)]
    while todo:
        item = todo.pop()
        if isinstance(item, Step):
            steps.append(item)
            continue
        todo += reversed(_expand(table, *item))
    return tuple(steps)


def _expand(table: Table, s: int, t: int, m: int) -> list[tuple[int, int, int] | Step]:
    """One step of the recurrence, the entry's own: found again by its value, which costs less than to store it."""
    segments, wanted = table.segments, table.excess[row(s, t), m]
    if not np.isfinite(wanted):
        raise ValueError(f"stages {s}..{t} do not fit in {m} slots")
    ways = segments.last if s == t else segments.ways
    for place in range(ways.start[s], ways.start[s + 1]):
        way, left = int(place - ways.start[s]), m - int(ways.keep[place])
        if m < max(segments.delta[t] + ways.forward[place], ways.backward[place], ways.keep[place]):
            continue
        if s == t and ways.time[place] == wanted:
            return [Step(Op.ALL, t, way), Step(Op.BACK, t, way)]
        if s < t and ways.time[place] + table.excess[row(s + 1, t), left] == wanted:
            return [Step(Op.ALL, s, way), (s + 1, t, left), Step(Op.BACK, s, way)]
    walked = np.cumsum(segments.walk)
    for cut in range(s + 1, t + 1):
        left = m - int(segments.a[cut - 1])
        price = walked[cut - 1] - walked[s - 1] - segments.spared[cut - 1]
        if left >= 0 and price + table.excess[row(cut, t), left] + table.excess[row(s, cut - 1), m] == wanted:
            forwards = [Step(Op.CHECK, s), *(Step(Op.EMPTY, k) for k in range(s + 1, cut))]
            return [*forwards, (cut, t, left), (s, cut - 1, m)]
    raise AssertionError("an entry of the table that nothing explains")
