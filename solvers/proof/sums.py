"""Adding rows up, exactly: what their sum says of the cost.

Every number lies between 0 and 1. So a schedule costs at least the least value that

    cost - sum(weight * (terms - low))   (weights are not negative, and rows hold)

takes when each number is on its own at the better of its two ends (A. Neumaier, O. Shcherbina, "Safe bounds in linear
and mixed-integer linear programming", 2004). Any weights will do: those that a floating-point solver gives are near the
best ones, and being a little off costs a little of the bound, never its truth.

Invariant: integers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from solvers.proof.rows import Number, Row

Fixed = Mapping[Number, int]  # numbers that are known in the case: 0 or 1


def least(weighted: Iterable[tuple[Row, int]], costs: Mapping[Number, int], sure: int, shift: int, fixed: Fixed) -> int:
    """2**shift times the proved least cost: `sure`, and `costs` of each number that is 1. Weights are scaled by
    2**shift."""
    total = sure << shift
    rest = {number: cost << shift for number, cost in costs.items()}
    for row, weight in weighted:
        total += weight * row.low
        for number, times in row.terms.items():
            rest[number] = rest.get(number, 0) - weight * times
    for number, left in rest.items():
        total += left * fixed[number] if number in fixed else min(0, left)
    return total
