"""The linear program of a proof, solved repeatedly with some numbers fixed, and its duals as whole weights.

Invariant: nothing here need be right. The weights come from floating-point arithmetic, are rounded to whole numbers and
are never below 0; `solvers.proof.sums` says what they prove.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solvers.proof.certificate import Sum
from solvers.proof.check import costs_of, price
from solvers.proof.rows import Number, Row
from solvers.prover.program import ProofProgram
from solvers.scip import INFINITY, Linear

_DIGITS = 40  # binary digits of a weight


@dataclass(frozen=True, slots=True)
class Solved:
    """`bound`: about the least cost of the case; infinite if the case cannot occur. `weights`: of the rows, by
    index."""

    bound: float
    values: Mapping[Number, float]
    weights: Mapping[int, float]


class Duals:
    def __init__(self, program: ProofProgram) -> None:
        self.program = program
        self.costs = costs_of(program.source)
        self.scale = max((node.cost for node in program.source.problem.nodes), default=0) / 1000 or 1.0
        self.columns = list(program.columns)
        self.linear = Linear([self.price(number) / self.scale for number in self.columns])
        self.rows: list[Row] = []
        self.size: list[int] = []  # the largest coefficient of each row, by which the row is divided
        self.fixed: dict[Number, int] = {}
        self.take()

    def price(self, number: Number) -> int:
        return price(self.program.source, number)

    def take(self) -> None:
        """Add the rows found since the last call to the program."""
        found = list(self.program.rows.values())[len(self.rows) :]
        place = self.program.columns
        self.rows += found
        self.size += [max((abs(times) for times in row.terms.values()), default=1) for row in found]
        pairs = list(zip(found, self.size[-len(found) :], strict=True)) if found else []
        self.linear.add_rows(
            [[(place[n], times / size) for n, times in row.terms.items() if n in place] for row, size in pairs],
            [row.low / size for row, size in pairs],
        )

    def solve(self, fixed: Mapping[Number, int]) -> Solved:
        place = self.program.columns
        for number in self.fixed.keys() - fixed.keys():
            self.linear.bound(place[number], 0.0, 1.0)
        for number, value in fixed.items():
            if self.fixed.get(number) != value:
                self.linear.bound(place[number], float(value), float(value))
        self.fixed = dict(fixed)
        cost, values, weights = self.linear.solve()
        bound = INFINITY if cost == INFINITY else cost * self.scale + self.costs.sure
        taken = {row: weight for row, weight in enumerate(weights) if weight > 0}
        return Solved(bound, dict(zip(self.columns, values, strict=True)) if values else {}, taken)

    def sum_of(self, solved: Solved) -> Sum:
        """The weights in the form of a certificate."""
        holds = solved.bound < INFINITY
        scale = self.scale if holds else 1.0
        shift = _DIGITS + max((self.size[row] for row in solved.weights), default=1).bit_length()
        whole = {row: round(weight * scale / self.size[row] * 2**shift) for row, weight in solved.weights.items()}
        taken = {row: weight for row, weight in sorted(whole.items()) if weight > 0}
        return Sum(tuple(taken), tuple(taken.values()), shift, holds)
