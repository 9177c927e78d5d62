"""The optimal sequence with floating activations: Algorithm 1 of "Optimal Re-materialization Strategies for
Heterogeneous Chains" (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova).

An activation a^{s-1} may be kept for a while, to start forwards from, and given up before its own backward. So a state
has three stages: C(s, t, l, M) is the least time to differentiate stages t..l from a^{s-1}, s <= t, when δ^l is held
and M is the memory left, a^{s-1} counted in it. It is the least of

    F_all^s, then (s+1, s+1, l), then B^s                                                        if s = t
    F_0^s: give a^{s-1} up and go on from a^s, (s+1, t, l)                                       if s < t
    F_ck^s, then (s+1, t', l) in M - a^{s-1}, then (s, t, t'-1) in M,   for t' in t+1..l

The paper chooses the first stage kept, where it starts and what it differentiates together, which makes O(L^6) steps
for each M; one stage at a time, its choices factor and O(L^4) remain. Going on from a^s and running F_all^t at once is
in the recurrence too.

Invariant: rows never increase with M; entries hold the excess over running stages t..l once. If somebody stopped the
program, the whole chain's row, the last to be filled, is infinite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers._loops import fill_floating
from solvers.methods.chains.chain import Chain, ChainStep, StageOp
from solvers.methods.chains.program import Floats, never, unrolled
from solvers.methods.chains.slots import in_slots

SLOTS = 500
MOST_BYTES = 3 * 10**8  # where stages can be joined instead


def floating(chain: Chain, limit: float, slots: int = SLOTS) -> tuple[ChainStep, ...] | None:
    """The sequence of least makespan within the limit; None where the program finds none."""
    small, unit = in_slots(chain, limit, slots)
    if unit.count < small.a[0]:
        return None
    program = FloatingProgram(small, unit.count)
    return program.trace(unit.count) if np.isfinite(program.whole()[-1]) else None


def bytes_needed(stages: int, slots: int) -> int:
    """What the table takes: it has a row for each three stages in order."""
    return 8 * _row(stages, stages, stages) * (slots + 2)


class FloatingProgram:
    """The filled table of a chain whose sizes are in slots."""

    def __init__(self, chain: Chain, memory: int, stopped: Callable[[], bool] = never) -> None:
        stages = chain.length
        self.stages = stages
        self.forward = np.array(chain.forward, np.float64)
        self.a, self.abar, self.delta, self.o_f, o_b = (
            np.array(sizes, np.int64) for sizes in (chain.a, chain.abar, chain.delta, chain.o_f, chain.o_b)
        )
        self.backward_memory = self.abar + self.delta + np.roll(self.delta, 1) + o_b
        self.excess = np.full((_row(stages, stages, stages) + 1, memory + 1), np.inf)
        walked = np.cumsum(self.forward)
        facts = (self.forward, walked, self.a, self.abar, self.delta, self.o_f, self.backward_memory)
        for last in range(1, stages + 1):
            if stopped():
                break
            fill_floating(last, self.excess, facts)

    def whole(self) -> Floats:
        """The excess of the whole chain for each memory."""
        return self.excess[_row(1, 1, self.stages)]

    def trace(self, memory: int) -> tuple[ChainStep, ...]:
        """The sequence behind the whole chain's entry for `memory`."""
        return unrolled((1, 1, self.stages, memory), lambda entry: self._expand(*entry))

    def _value(self, s: int, t: int, last: int, memory: int) -> float:
        return float(self.excess[_row(s, t, last), memory]) if memory >= 0 else float("inf")

    def _expand(self, s: int, t: int, last: int, memory: int) -> list[tuple[int, int, int, int] | ChainStep]:
        """One step of the recurrence, the entry's own."""
        wanted = self._value(s, t, last, memory)
        beyond = memory - int(self.a[s - 1])
        if s == t == last:
            return [ChainStep(StageOp.ALL, s), ChainStep(StageOp.BACK, s)]
        inside = beyond - int(self.abar[s]) + int(self.a[s])
        fits = beyond >= max(self.delta[last] + self.abar[s] + self.o_f[s], self.backward_memory[s])
        if s == t and fits and self._value(s + 1, s + 1, last, inside) == wanted:
            return [ChainStep(StageOp.ALL, s), (s + 1, s + 1, last, inside), ChainStep(StageOp.BACK, s)]
        if s < t and self.forward[s] + self._value(s + 1, t, last, memory) == wanted:
            return [ChainStep(StageOp.EMPTY, s), (s + 1, t, last, memory)]
        for then in range(t + 1, last + 1):
            later, earlier = self._value(s + 1, then, last, beyond), self._value(s, t, then - 1, memory)
            if self.forward[s] + later + earlier == wanted:
                return [ChainStep(StageOp.CHECK, s), (s + 1, then, last, beyond), (s, t, then - 1, memory)]
        raise AssertionError("an entry of the table that nothing explains")


def _row(s: int, t: int, last: int) -> int:
    return (last - 1) * last * (last + 1) // 6 + (t - 1) * t // 2 + s - 1
