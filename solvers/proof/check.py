"""Checks that a certificate proves its claim about a problem, from the problem and exact integers alone.

Invariant: nothing is searched for and nothing is rounded; what is returned has been derived here. A claim that does not
follow, to the last digit of the bound, is refused (`Unproved`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from solvers.problem import Problem
from solvers.proof.certificate import Cases, CostProof, PeakProof, Sum
from solvers.proof.peaks import surely_needs
from solvers.proof.rounding import rounded
from solvers.proof.rows import WHOLE, Name, Number, Row, Rows
from solvers.proof.sums import least
from solvers.proof.timeline import Unproved, timeline


def check_peak(problem: Problem, proof: PeakProof) -> None:
    """Check that no schedule has a lower peak."""
    if not surely_needs(problem, proof.node, proof.bound):
        raise Unproved(f"a peak of less than {proof.bound} bytes is not ruled out")


def check_cost(problem: Problem, proof: CostProof) -> None:
    """Check that no schedule of the class costs less, or that there is none."""
    proved = derive_cost(problem, proof)
    if proved != proof.bound:
        said = "that there is no schedule" if proof.bound is None else f"a cost of at least {proof.bound}"
        raise Unproved(f"{said} is claimed; what follows is {'nothing' if proved is None else f'at least {proved}'}")


def derive_cost(problem: Problem, proof: CostProof) -> int | None:
    """The bound that the proof gives; None if it proves that there is no schedule."""
    checked = _Checked(problem, proof)
    bounds = [bound for bound in checked.leaves() if bound is not None]
    return min(bounds, default=None)


@dataclass(frozen=True, slots=True)
class CostUnits:
    """`sure`: the cost of what runs once in any case. `unit`: the common divisor of costs. A cost is `total` plus a
    multiple of `unit`."""

    sure: int
    total: int
    unit: int

    def whole(self, scaled: int, shift: int) -> int:
        """The least possible cost that is at least scaled / 2**shift."""
        steps = -(((self.total << shift) - scaled) // (self.unit << shift))
        return self.total + max(0, steps) * self.unit


def costs_of(rows: Rows) -> CostUnits:
    every = [node.cost for node in rows.problem.nodes]
    sure = sum(cost for node, cost in enumerate(every) if rows.time.sure(node))
    return CostUnits(sure, sum(every), max(1, gcd(*every)))


def price(rows: Rows, number: Number) -> int:
    """The cost of a number that is 1."""
    what, _, about = number
    return rows.problem.nodes[about].cost if what == "runs" else 0


def row_of(rows: Rows, name: Name, before: Sequence[Row]) -> Row:
    """The row of this name; `before`: the rows listed before it, one of which it may round."""
    match name:
        case ("round", int(place), int(divisor), *turned) if 0 <= place < len(before):
            return rounded(before[place], divisor, [int(number) for number in turned])
    return rows.row(name)


class _Checked:
    def __init__(self, problem: Problem, proof: CostProof) -> None:
        self.proof = proof
        ended = problem.ended()
        self.rows = Rows(ended, proof.budget, timeline(ended, proof.order, proof.pivots))
        if len(set(proof.rows)) < len(proof.rows):
            raise Unproved("a row is named twice")
        self.named: list[Row] = []
        for name in proof.rows:
            self.named.append(row_of(self.rows, name, self.named))
        self.costs = costs_of(self.rows)

    def leaves(self) -> list[int | None]:
        """The proof of each case: a cost, or None if the case cannot occur. The cases are exhaustive, and each step is
        used once."""
        steps = self.proof.steps
        found: list[int | None] = []
        waiting: list[tuple[int, dict[Number, int]]] = [(0, {})]
        seen: set[int] = set()
        while waiting:
            place, fixed = waiting.pop()
            if place in seen or not 0 <= place < len(steps):
                raise Unproved(f"step {place} is missing, or used twice")
            seen.add(place)
            step = steps[place]
            if isinstance(step, Sum):
                found.append(self._sum(step, fixed, place))
                continue
            self._tell_apart(step, fixed, place)
            waiting += [(step.zero, {**fixed, step.number: 0}), (step.one, {**fixed, step.number: 1})]
        if len(seen) < len(steps):
            raise Unproved("a step is of no use")
        return found

    def _tell_apart(self, step: Cases, fixed: dict[Number, int], place: int) -> None:
        what, group, about = step.number
        known = {"runs": (self.rows.runs, self.rows.problem.nodes), "held": (self.rows.held, self.rows.problem.sizes)}
        if what not in WHOLE or step.number in fixed:
            raise Unproved(f"step {place} tells apart what has no two cases")
        number, every = known[what]
        inside = 0 <= group < self.rows.groups and 0 <= about < len(every)
        if not inside or number(group, about) != step.number:
            raise Unproved(f"step {place} tells apart what is no number of this problem")

    def _sum(self, step: Sum, fixed: dict[Number, int], place: int) -> int | None:
        if len(step.rows) != len(step.weights) or any(weight <= 0 for weight in step.weights) or step.shift < 0:
            raise Unproved(f"step {place} does not give each row a weight above 0")
        if any(not 0 <= row < len(self.named) for row in step.rows) or len(set(step.rows)) < len(step.rows):
            raise Unproved(f"step {place} takes a row twice, or one that is not named")
        weighted = [(self.named[row], weight) for row, weight in zip(step.rows, step.weights, strict=True)]
        if step.costs:
            bound = least(weighted, self._prices(weighted, fixed), self.costs.sure, step.shift, fixed)
            return self.costs.whole(bound, step.shift)
        if least(weighted, {}, 0, step.shift, fixed) <= 0:
            raise Unproved(f"step {place} does not show that its case cannot be")
        return None

    def _prices(self, weighted: list[tuple[Row, int]], fixed: dict[Number, int]) -> dict[Number, int]:
        """The prices of numbers. A number in no row is best at 0, so it is left out unless it is fixed."""
        numbers = {number for row, _ in weighted for number in row.terms} | fixed.keys()
        return {number: price(self.rows, number) for number in numbers}
