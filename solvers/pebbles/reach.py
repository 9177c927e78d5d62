"""The least peak with which copies can be brought into memory together, by a search backwards to nothing held.

Of copies that are in memory at once, one was made last: meanwhile the others were held, and what its node reads. So a
state is a set of copies, and a step back takes away what a node writes and asks for what it reads; the peak of a way is
the most that any of its steps needs. Taken in the order of their peaks, states are few, for three reasons:

1. Copies that can be made of nothing beside all others, without a higher peak, need not be held: `alone` says what
   that takes. Whatever reaches the larger set reaches the smaller one.
2. A state that includes one that was looked at at no higher peak is of no use.
3. A copy no smaller than all that its node reads, which no other copy needs, is made last: in any way there, hold what
   was read in its place from then on.

A node that runs once makes its copies before all that needs them, and last of what is held then.

Invariant: `least` holds for every way, repeats and any order of first computes included, whatever `alone` says and
wherever the search is cut short; the way found has the peak `peak` if what `alone` says can be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from solvers._loops import reach
from solvers.orders.arrays import Ints
from solvers.pebbles.copies import Copies

NEVER = 1 << 62  # more than any peak
_NONE = -1


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """Beside the values `held`, `node` runs; or, if that is None, `value` is made of nothing."""

    held: frozenset[int]
    node: int | None
    value: int


@dataclass(frozen=True, slots=True)
class Reached:
    """`peak`, `way`: of the way found, None if the search was cut short or there is none below what is known. `size`:
    bytes of what was wanted. `states`: looked at."""

    least: int
    peak: int | None
    way: tuple[BackwardStep, ...] | None
    size: int
    states: int


@dataclass(frozen=True, slots=True)
class BackwardSearch:
    """`alone`: for each copy, the least peak known with which it is made of nothing. `known`: no way is wanted whose
    peak is that or more. `states`: looked at, at most."""

    copies: Copies
    alone: Ints
    known: int
    states: int
    halt: Ints

    def run(self, wanted: Sequence[int], at_least: int) -> Reached:
        """`at_least`: a peak below which it does not matter."""
        bits = np.array(wanted, np.int64)
        found = reach(self.copies.tables, bits, self.alone, self.known, self.states, at_least, self.halt)
        least, peak, size, states, *way = found
        if peak == _NONE:
            return Reached(least, None, None, size, states)
        return Reached(least, peak, tuple(self._steps(*way)), size, states)

    def _steps(self, nodes: Ints, made: Ints, at: Ints, held: Ints) -> Iterator[BackwardStep]:
        value = self.copies.tables.value
        for place, (node, bit) in enumerate(zip(nodes.tolist(), made.tolist(), strict=True)):
            beside = frozenset(value[held[at[place] : at[place + 1]]].tolist())
            yield BackwardStep(beside, None, int(value[bit])) if node == _NONE else BackwardStep(beside, node, _NONE)
