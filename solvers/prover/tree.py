"""Splits cases until each is closed: branch and bound whose every leaf can be checked.

The case with the lowest bound is split next, so that whenever the search ends, its bound is the best it has. A number
to split on is first tried on both sides (strong branching), until its gains are known.

Invariant: `steps` cover all cases; the weights of each come from a linear program's duals, which need not be right:
`check` says what they prove.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from solvers.clock import Clock
from solvers.proof.certificate import Cases, Sum
from solvers.proof.rows import WHOLE, Number
from solvers.prover.duals import Duals, Solved

_TRIED = 8  # numbers tried before one is split on
_KNOWN = 4  # tries after which a number's gain is known
_LEAST = 1e-6  # the least gain, so that products of gains can be compared


@dataclass(slots=True)
class _Open:
    solved: Solved
    fixed: dict[Number, int]
    place: int


@dataclass(slots=True)
class _Gains:
    """The gain of fixing a number on either side, for each unit of its distance from that side."""

    sums: dict[tuple[Number, int], tuple[float, int]] = field(default_factory=dict)

    def learn(self, number: Number, side: int, gain: float) -> None:
        total, count = self.sums.get((number, side), (0.0, 0))
        self.sums[number, side] = total + gain, count + 1

    def known(self, number: Number) -> bool:
        return all(self.sums.get((number, side), (0.0, 0))[1] >= _KNOWN for side in (0, 1))

    def score(self, number: Number, value: float, otherwise: float) -> float:
        found = 1.0
        for side, off in ((0, value), (1, 1 - value)):
            total, count = self.sums.get((number, side), (otherwise, 1))
            found *= max(total / count * off, _LEAST)
        return found


class CaseTree:
    """One proof by cases. `goal`: a case that costs at least as much is closed."""

    def __init__(self, duals: Duals, goal: float, clock: Clock, most: int) -> None:
        self.duals, self.clock, self.most = duals, clock, most
        self.goal = goal
        self.gains = _Gains()
        self.steps: list[Sum | Cases | None] = [None]
        self.open: list[tuple[float, int, _Open]] = []
        self.closed: list[tuple[int, Solved]] = []

    def run(self) -> list[Sum | Cases]:
        self._take(_Open(self.duals.solve({}), {}, 0))
        while self.open and len(self.open) + len(self.closed) < self.most and not self.clock.over():
            self._split(heapq.heappop(self.open)[2])
        for place, solved in (*self.closed, *((case.place, case.solved) for _, _, case in self.open)):
            self.steps[place] = self.duals.sum_of(solved)
        assert all(step is not None for step in self.steps)
        return [step for step in self.steps if step is not None]

    def _take(self, case: _Open) -> None:
        if case.solved.bound >= self.goal or not self._broken(case):
            self.closed.append((case.place, case.solved))
        else:
            heapq.heappush(self.open, (case.solved.bound, case.place, case))

    def _broken(self, case: _Open) -> list[Number]:
        """Numbers that must be 0 or 1 and are neither."""
        values = case.solved.values
        return [n for n, x in values.items() if 1e-6 < x < 1 - 1e-6 and n[0] in WHOLE and n not in case.fixed]

    def _split(self, case: _Open) -> None:
        number, sides = self._choose(case)
        self.steps += [None, None]
        zero, one = len(self.steps) - 2, len(self.steps) - 1
        self.steps[case.place] = Cases(number, zero, one)
        for side, place in ((0, zero), (1, one)):
            fixed = {**case.fixed, number: side}
            solved = sides[side] if side in sides else self._try(case, number, side)
            self._take(_Open(solved, fixed, place))

    def _try(self, case: _Open, number: Number, side: int) -> Solved:
        solved = self.duals.solve({**case.fixed, number: side})
        value = case.solved.values[number]
        gain = min(solved.bound, self.goal, 1e18) - case.solved.bound
        self.gains.learn(number, side, max(0.0, gain) / max(_LEAST, value if side == 0 else 1 - value))
        return solved

    def _choose(self, case: _Open) -> tuple[Number, Mapping[int, Solved]]:
        """The number that gains most on both sides, and the solved cases of it so far."""
        values = case.solved.values
        average = self._average()
        numbers = sorted(
            self._broken(case),
            key=lambda n: self.gains.score(n, values[n], average + self.duals.price(n)),
            reverse=True,
        )
        best: tuple[float, Number, dict[int, Solved]] | None = None
        for number in numbers[:_TRIED]:
            sides: dict[int, Solved] = {}
            if not self.gains.known(number) and not self.clock.over():
                sides = {side: self._try(case, number, side) for side in (0, 1)}
            score = self.gains.score(number, values[number], average)
            if sides:
                won = [min(solved.bound, self.goal) - case.solved.bound for solved in sides.values()]
                score = max(won[0], _LEAST) * max(won[1], _LEAST)
            if best is None or score > best[0]:
                best = score, number, sides
        assert best is not None
        return best[1], best[2]

    def _average(self) -> float:
        counts = [total / count for total, count in self.gains.sums.values()]
        return sum(counts) / len(counts) if counts else 1.0
