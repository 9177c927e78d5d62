"""Exact answers for tiny chains, by shortest paths over what is in memory; shares no code with any solver.

Stages count from 1 to n; `a[0]` is the input. In memory: some a^l by themselves, some ā^l (which serve as a^l too), and
one gradient.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

State = tuple[frozenset[int], frozenset[int], int, int]  # a's held, ā's held, gradient, the a that is only passing by
NOTHING = -1


@dataclass(frozen=True)
class Tiny:
    fw: tuple[int, ...]  # of stage l at l - 1
    bw: tuple[int, ...]
    a: tuple[int, ...]  # of a^l at l
    abar: tuple[int, ...]
    of: tuple[int, ...]
    ob: tuple[int, ...]

    def held(self, state: State) -> int:
        singles, full, gradient, passing = state
        alone = singles | ({passing} if passing != NOTHING else set())
        return sum(self.a[i] for i in alone) + sum(self.abar[i] for i in full) + self.a[gradient]


def random_tiny(random: Random, stages: int) -> Tiny:
    """The last stage is the loss: no forward to speak of, and nothing to keep."""
    fw = [random.randint(1, 6) for _ in range(stages - 1)]
    a = [random.randint(1, 5) for _ in range(stages)]
    return Tiny(
        fw=(*fw, 0),
        bw=(*(random.randint(1, 8) for _ in fw), 0),
        a=(*a, 0),
        abar=(0, *(size + random.randint(0, 6) for size in a[1:]), 0),
        of=(*(random.randint(0, 3) for _ in fw), 0),
        ob=(*(random.randint(0, 3) for _ in fw), 0),
    )


def least_makespan(tiny: Tiny, memory: int, persistent: bool) -> int | None:
    """`persistent`: what is kept is given up only by its backward. Otherwise an a^l may go unless ā^{l+1} is held."""
    start: State = (frozenset({0}), frozenset(), len(tiny.fw), NOTHING)
    known = {start: 0}
    heap = [(0, 0, start)]
    count = 0
    while heap:
        time, _, state = heapq.heappop(heap)
        if time > known[state]:
            continue
        if state[2] == 0:
            return time
        for after, took, peak in _moves(tiny, state, persistent):
            if peak <= memory and time + took < known.get(after, time + took + 1):
                known[after] = time + took
                count += 1
                heapq.heappush(heap, (time + took, count, after))
    return None


def _moves(tiny: Tiny, state: State, persistent: bool) -> Iterator[tuple[State, int, int]]:
    singles, full, gradient, passing = state
    used = tiny.held(state)
    sources = {passing} if passing != NOTHING else singles | full
    for source in sources:
        stage = source + 1
        if stage > gradient:
            continue
        took, over = tiny.fw[stage - 1], tiny.of[stage - 1]
        kept = singles | ({source} if passing != NOTHING else set())
        reached = used + tiny.a[stage] + over
        if stage not in singles:
            yield (frozenset(kept), full, gradient, stage), took, reached  # its input is kept
        if passing != NOTHING and stage not in singles:
            yield (singles, full, gradient, stage), took, reached  # its input goes
        if stage not in full:
            yield (frozenset(kept), full | {stage}, gradient, NOTHING), took, used + tiny.abar[stage] + over
    if passing == NOTHING and gradient in full and (gradient - 1 in singles or gradient - 1 in full):
        rest = (singles - {gradient, gradient - 1}, full - {gradient}, gradient - 1, NOTHING)
        yield rest, tiny.bw[gradient - 1], used + tiny.a[gradient - 1] + tiny.ob[gradient - 1]
    if not persistent:
        if passing != NOTHING:
            yield (singles, full, gradient, NOTHING), 0, used
        for single in singles:
            if single + 1 not in full:
                yield (singles - {single}, full, gradient, passing), 0, used
                if passing == NOTHING:
                    yield (singles - {single}, full, gradient, single), 0, used
