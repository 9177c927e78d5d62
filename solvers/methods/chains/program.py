"""Rotor's dynamic program over the segments of a chain, each stage with one or several ways to be run.

C_BP(s, t, m) of the paper (Theorem 3, Algorithm 3): the least time to differentiate stages s..t when a^{s-1} is held,
δ^t is held, and m is the memory beyond a^{s-1}. It is the lesser of

    F_all^s, then (s+1, t) in m - ā^s, then B^s                                  (one such line for each way to run s)
    F_ck^s F_0^{s+1} .. F_0^{s'-1}, then (s', t) in m - a^{s'-1}, then (s, s'-1) in m,  for s' in s+1..t

In a graph a^s need not be part of ā^s: B^s and B^{s+1} may both do without it. So there is a second table, where
a^{s-1} is held by nobody else and counted in m: it may go once F_all^s has run, if B^s does not read it.

The tables hold the excess over running each stage once in its quickest way. A cut at s' adds at least the forward time
of s..s'-1, so for each s' only those m need a look at which the best excess so far is larger: the table is exact all
the same, and most of it is never touched.

Invariant: rows never increase with m, and an entry is finite exactly where a sequence was found: the whole chain's, the
last to be filled, nowhere if somebody stopped the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from solvers._loops import fill_segments
from solvers.methods.chains.chain import ChainStep, StageOp

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_COLUMNS = 4  # filled side by side
State = TypeVar("State")  # an entry of a table


@dataclass(frozen=True, slots=True)
class Ways:
    """For each stage, the ways to run it; way k of stage s is entry start[s] + k. Sizes in slots."""

    start: Ints  # stage -> its first way; one entry more than stages
    time: Floats  # what a way costs beyond the quickest
    keep: Ints  # ā: what it holds from its forward to its backward
    holds: Bools  # whether its output is part of that
    loose: Bools  # whether its backward does without its input
    forward: Ints  # memory beyond the input and δ^t while its forward runs
    backward: Ints  # memory beyond the input while its backward runs, δ^s and δ^{s-1} included


@dataclass(frozen=True, slots=True)
class ChainSegments:
    """What the program needs to know of a chain. Arrays over stages 1..n (and 0)."""

    walk: Floats  # time of F_ck or F_0
    walk_memory: Ints  # their memory beyond the input: a^s + o_f^s
    a: Ints
    delta: Ints
    ways: Ways  # followed by later stages
    at_once: Ints  # for the last stage of a segment: memory beyond the input while F_all and B run one after the other
    spared: Floats  # what the last stage of a segment saves, as its output is not wanted


@dataclass(frozen=True, slots=True)
class SegmentTable:
    segments: ChainSegments
    excess: Floats  # row(s, t) x memory beyond a^{s-1}
    loose: Floats  # row(s, t) x memory, a^{s-1} in it and free to go

    def whole(self) -> Floats:
        """The excess of the whole chain for each memory."""
        return self.excess[row(1, len(self.segments.a) - 1)]


def row(first: int, last: int) -> int:
    return last * (last - 1) // 2 + first - 1


def never() -> bool:
    return False


def solve_segments(segments: ChainSegments, memory: int, stopped: Callable[[], bool] = never) -> SegmentTable:
    count = len(segments.a) - 1
    ways = segments.ways
    excess = np.full((count * (count + 1) // 2, memory + 1), np.inf)
    loose = np.full_like(excess if not ways.holds.all() else excess[:0], np.inf)
    inner = np.zeros(count + 1, np.int64)
    facts = (
        np.cumsum(segments.walk),
        segments.walk_memory,
        segments.a,
        segments.delta,
        segments.spared,
        ways.start,
        ways.time,
        ways.keep,
        ways.holds,
        ways.loose,
        ways.forward,
        ways.backward,
        segments.at_once,
    )
    for left in range(1, count + 1, _COLUMNS):
        if stopped():
            break
        fill_segments(left, min(left + _COLUMNS, count + 1), excess, loose, inner, facts)
    return SegmentTable(segments, excess, loose)


@dataclass(frozen=True, slots=True)
class _State:
    """An entry of a table: stages first..last in `memory`; `loose`: the input is part of it and may go."""

    first: int
    last: int
    memory: int
    loose: bool


def trace(table: SegmentTable, memory: int) -> tuple[ChainStep, ...]:
    """The sequence behind the whole chain's entry for `memory`."""
    walked = np.cumsum(table.segments.walk)
    whole = _State(1, len(table.segments.a) - 1, memory, False)
    return unrolled(whole, lambda state: _expand(table, walked, state))


def unrolled(whole: State, expand: Callable[[State], Sequence[State | ChainStep]]) -> tuple[ChainStep, ...]:
    """The steps that a state comes to, which `expand` takes apart by one step of its recurrence."""
    steps: list[ChainStep] = []
    todo: list[State | ChainStep] = [whole]
    while todo:
        item = todo.pop()
        if isinstance(item, ChainStep):
            steps.append(item)
        else:
            todo += reversed(expand(item))
    return tuple(steps)


def _value(table: SegmentTable, state: _State) -> float:
    if state.memory < 0:
        return float("inf")
    return float((table.loose if state.loose else table.excess)[row(state.first, state.last), state.memory])


def _expand(table: SegmentTable, walked: Floats, state: _State) -> Sequence[_State | ChainStep]:
    """One step of the recurrence, the entry's own: found again by its value, which costs less than to store it."""
    segments, s, t, m = table.segments, state.first, state.last, state.memory
    wanted = _value(table, state)
    if not np.isfinite(wanted):
        raise ValueError(f"stages {s}..{t} do not fit in {m} slots")
    for way in range(segments.ways.start[s], segments.ways.start[s + 1]) if s < t else ():
        after = _after(segments, state, way)
        if after is not None and segments.ways.time[way] + _value(table, after) == wanted:
            number = int(way - segments.ways.start[s])
            return [ChainStep(StageOp.ALL, s, number), after, ChainStep(StageOp.BACK, s, number)]
    if state.loose:
        return [_State(s, t, m - int(segments.a[s - 1]), False)]
    if s == t:
        return [ChainStep(StageOp.ALL, t), ChainStep(StageOp.BACK, t)]
    for cut in range(s + 1, t + 1):
        later, earlier = _State(cut, t, m - int(segments.a[cut - 1]), False), _State(s, cut - 1, m, False)
        price = walked[cut - 1] - walked[s - 1] - segments.spared[cut - 1]
        if price + _value(table, later) + _value(table, earlier) == wanted:
            forwards = [ChainStep(StageOp.CHECK, s), *(ChainStep(StageOp.EMPTY, k) for k in range(s + 1, cut))]
            return [*forwards, later, earlier]
    raise AssertionError("an entry of the table that nothing explains")


def _after(segments: ChainSegments, state: _State, way: int) -> _State | None:
    """What remains to be differentiated after F_all in this way, if it fits."""
    ways, s, m = segments.ways, state.first, state.memory
    if state.loose and not ways.loose[way]:
        return None
    there = int(segments.a[s - 1]) if state.loose else 0
    if m < max(there + segments.delta[state.last] + ways.forward[way], ways.backward[way], ways.keep[way]):
        return None
    return _State(s + 1, state.last, m - int(ways.keep[way]), not ways.holds[way])
