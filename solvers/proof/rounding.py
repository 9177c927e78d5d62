"""A row made sharper because what it speaks of is 0 or 1: mixed-integer rounding of one row.

Let `a z + s >= low`, z whole numbers and s not negative, `d` a divisor and r = low mod d, not 0. Then with
G(a) = floor(a / d) r + min(r, a mod d) it also holds that `G(a) z + s >= ceil(low / d) r` (G. Nemhauser, L. Wolsey,
"Integer and combinatorial optimization", 1988, II.1.7). Of a number x its other half 1 - x may take the place first.

Invariant: integers only; the row that is returned holds wherever the one given holds.
"""

from __future__ import annotations

from collections.abc import Collection

from solvers.proof.rows import Row
from solvers.proof.timeline import Unproved

ROUNDED = ("runs", "held", "through")  # numbers that are 0 or 1, and nothing between


def rounded(row: Row, divisor: int, turned: Collection[int]) -> Row:
    """The row rounded by the divisor. `turned`: the indices of the row's numbers x that 1 - x replaces first."""
    numbers = sorted(row.terms)
    if divisor <= 0 or any(not 0 <= place < len(numbers) for place in turned):
        raise Unproved("a row is rounded by what is no divisor, or in what it does not speak of")
    other = {numbers[place] for place in turned}
    low = row.low - sum(row.terms[number] for number in other)
    rest = low % divisor
    if not rest:
        raise Unproved("a row is rounded that is whole already")
    found = Row(-(-low // divisor) * rest)
    for number in numbers:
        times = -row.terms[number] if number in other else row.terms[number]
        sharp = sharpen(times, divisor, rest) if number[0] in ROUNDED else max(0, times)
        if number in other:
            found.low -= sharp
            sharp = -sharp
        found.add(number, sharp)
    return found


def sharpen(times: int, divisor: int, rest: int) -> int:
    """G of the module's text."""
    whole, part = divmod(times, divisor)
    return whole * rest + min(rest, part)
