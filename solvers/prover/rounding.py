"""Rounds rows where the linear program's answer is fractional, so that fewer cases remain to be split.

For each row about memory, the divisors are the sizes of fractional values and their halves. Each number x is replaced
by 1 - x where that is nearer to 0. (H. Marchand, L. Wolsey, "Aggregation and mixed integer rounding to solve MIPs",
2001, without the aggregation.)

Invariant: this module only chooses; `solvers.proof.rounding` defines a rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt

from solvers.proof.rounding import ROUNDED, sharpen
from solvers.proof.rows import Name, Number, Row
from solvers.prover.program import ProofProgram

_DIVISORS = 24  # divisors tried for a row
_VIOLATED = 1e-3  # violation relative to the length of the row's coefficients


def broken(program: ProofProgram, values: Mapping[Number, float]) -> Iterator[Name]:
    """For each row about memory, the name of the rounding that the values break most, if they break one."""
    for place, (name, row) in enumerate(program.rows.items()):
        if name[0] in ("fit", "peak") and (found := _best(row, values)):
            divisor, turned = found
            yield ("round", place, divisor, *turned)


def _best(row: Row, values: Mapping[Number, float]) -> tuple[int, list[int]] | None:
    """The divisor and the replaced numbers of the rounding that the values break most."""
    numbers = sorted(row.terms)
    there = [values.get(number, 0.0) for number in numbers]
    turned = {place for place, x in enumerate(there) if x > 0.5}
    best = _try_divisors(row, numbers, there, turned)
    if best is None:
        return None
    score, divisor = best
    unsure = sorted((p for p, x in enumerate(there) if 1e-6 < x < 1 - 1e-6), key=lambda p: abs(there[p] - 0.5))
    for place in unsure:
        other = turned ^ {place}
        again = _broken(row, numbers, there, other, divisor)
        if again > score:
            score, turned = again, other
    return (divisor, sorted(turned)) if score > _VIOLATED else None


def _try_divisors(row: Row, numbers: list[Number], there: list[float], turned: set[int]) -> tuple[float, int] | None:
    sizes = {abs(row.terms[n]) for n, x in zip(numbers, there, strict=True) if 1e-6 < x < 1 - 1e-6}
    found = [(_broken(row, numbers, there, turned, divisor), divisor) for divisor in sorted(sizes)[-_DIVISORS:]]
    if not found:
        return None
    score, divisor = max(found)
    halves = [divisor // part for part in (2, 4, 8) if divisor // part]
    return max([(score, divisor), *((_broken(row, numbers, there, turned, half), half) for half in halves)])


def _broken(row: Row, numbers: list[Number], there: list[float], turned: set[int], divisor: int) -> float:
    """How far the values break the rounded row, relative to its length."""
    low = row.low - sum(row.terms[numbers[place]] for place in turned)
    rest = low % divisor
    if not rest:
        return 0.0
    missing, length = float(-(-low // divisor) * rest), 0.0
    for place, number in enumerate(numbers):
        times, x = row.terms[number], there[place]
        if place in turned:
            times, x = -times, 1.0 - x
        sharp = sharpen(times, divisor, rest) if number[0] in ROUNDED else max(0, times)
        missing -= sharp * x
        if x > 1e-9:
            length += float(sharp) * sharp
    return missing / sqrt(length) if length else 0.0
