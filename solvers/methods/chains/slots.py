"""Sizes in slots: the unit in which the dynamic programs count memory.

Invariant: sizes round up and the limit rounds down, so that what fits in slots fits in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from solvers.methods.chains.chain import Chain


@dataclass(frozen=True, slots=True)
class Slots:
    unit: Fraction
    count: int  # how many of them the limit has

    def ceil(self, size: float) -> int:
        return math.ceil(Fraction(size) / self.unit)


def slots(limit: float, wanted: int, sizes: Iterable[float]) -> Slots:
    """About `wanted` slots; exact ones, one for each multiple of all sizes, where that needs no more."""
    numbers = [Fraction(size) for size in sizes]
    if limit <= 0:
        return Slots(Fraction(1), 0)
    if all(number.denominator == 1 for number in numbers) and Fraction(limit).denominator == 1:
        common = reduce(math.gcd, (number.numerator for number in numbers), 0) or 1
        if limit // common <= wanted:
            return Slots(Fraction(common), int(limit // common))
        unit = Fraction(max(int(limit) // wanted, 1))
        return Slots(unit, int(limit // unit))
    return Slots(Fraction(limit) / wanted, wanted)


def in_slots(chain: Chain, limit: float, wanted: int) -> tuple[Chain, Slots]:
    """The chain with its sizes in slots; its times stay as they are."""
    sizes = (chain.a, chain.abar[1:], chain.o_f, chain.o_b, chain.delta)
    unit = slots(limit, wanted, (size for group in sizes for size in group))
    return counted(chain, unit), unit


def counted(chain: Chain, unit: Slots) -> Chain:
    def rounded(group: tuple[float, ...]) -> tuple[int, ...]:
        return tuple(unit.ceil(size) for size in group)

    return replace(
        chain,
        a=rounded(chain.a),
        abar=rounded(chain.abar),
        o_f=rounded(chain.o_f),
        o_b=rounded(chain.o_b),
        delta=rounded(chain.delta),
    )
