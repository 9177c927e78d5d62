"""Annealing of orders of the pool, in lots of goes: from the best order and its rivals, at several temperatures and
prices of a byte over the budget, longer wherever a lot has found nothing. Long lots begin afresh as well.

Invariant: what a go comes to depends on its number, its start and the seed; goes of a lot run side by side, and their
results are taken in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from solvers.annealing.local import PRICES, TEMPERATURES, LocalSearch, WentTo
from solvers.methods.auto.gains import Gains
from solvers.methods.auto.operator import Operator
from solvers.methods.auto.origins import Afresh
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion

_WIDTH = 4  # goes of a lot, whatever the number of processors; half of them by the most promising settings
_SEEDS = 7919  # a prime, to keep the seeds of goes apart
_BEST, _OTHERS = 0, 1  # where goes begin
_RIVALS = 3  # of the best order: of more each would have too few goes to come near it
_SHORTEST, _LONGEST = 1 / 16, 4.0  # goes, in usual ones
_USUAL = 1.0  # from this length on the last go of a lot begins afresh: near what is known little was found
_PART = 1 / 2  # of the work so far: no lot takes more


@dataclass(slots=True)
class Setting:
    """One value of a parameter."""

    value: float
    gains: Gains = field(default_factory=Gains)


def promising(settings: Sequence[Setting]) -> Setting:
    return max(settings, key=lambda setting: setting.gains.rate)


class Annealing(Operator):
    """Not done in steps, but in lots: each takes results of the one before."""

    name, share = "annealing", 0.4

    def __init__(self, asked: SearchQuestion) -> None:
        super().__init__(asked, 0)
        self.pool = asked.pool
        self.local = LocalSearch(asked.problem, asked.budget, asked.limits.seed)
        self.starts = [Setting(value) for value in (_BEST, _OTHERS)]
        self.temperatures = [Setting(value) for value in TEMPERATURES]
        self.prices = [Setting(value) for value in PRICES]
        self.afresh = Afresh(asked, self.local)
        self.lengthen(_SHORTEST)
        self.goes = self.others = 0
        self.worth: tuple[int, int] | None = None  # of the pool, when goes of the longest kind found nothing

    def ready(self) -> bool:
        return bool(self.pool.entries) and self.worth != self.pool.worth

    def lengthen(self, length: float) -> None:
        self.length = length
        self.work = self._work(length)

    def _work(self, length: float) -> int:
        """Of a lot."""
        return _WIDTH * int(length * self.asked.moves) + (self.afresh.work if length >= _USUAL else 0)

    @property
    def shortest(self) -> int:
        """The work of the shortest lot."""
        return self._work(_SHORTEST)

    def lot(self, most: int | None = None) -> int:
        """`most`: moves that it may take. Returns those that it took."""
        length = self.length
        while most is not None and length > _SHORTEST and self._work(length) > most:
            length /= 2
        before, moves = self.pool.worth, int(length * self.asked.moves)
        chosen = [self._setting(turn) for turn in range(_WIDTH)]
        begins = [self._entry(settings[0].value) for settings in chosen]
        if length >= _USUAL:
            begins[-1] = None
        calls = [self._go(begin, settings, moves) for begin, settings in zip(begins, chosen, strict=True)]
        for begin, settings, (order, _) in zip(begins, chosen, self.asked.workers.side_by_side(calls), strict=True):
            found = self.pool.offer(order, self.name, None if begin is None else begin.origin)
            gained = 0.0 if found is None else self.asked.gain(before, found.worth)
            for setting in settings[begin is None :]:
                setting.gains.learn(gained, length)
        work = self._work(length)
        self.asked.limits.clock.spend(moves=work)
        if self.pool.worth == before and length == self.length:
            if self.length == _LONGEST:
                self.worth = before
            if self.length < _LONGEST and 2 * self.work <= _PART * self.asked.limits.clock.work.spent:
                self.lengthen(2 * self.length)
        elif self.pool.worth != before:
            self.worth = None
        return work

    def _entry(self, start: float) -> Contender | None:
        """The best, or its rivals in turn."""
        rivals = self.pool.rivals(_RIVALS)
        if start == _BEST or not rivals:
            return self.pool.first
        self.others += 1
        return rivals[self.others % len(rivals)]

    def _setting(self, turn: int) -> tuple[Setting, Setting, Setting]:
        """The most promising in half of the goes, and every one in turn: start, temperature and price."""
        parameters = self.starts, self.temperatures, self.prices
        if turn < _WIDTH // 2:
            start, temperature, price = map(promising, parameters)
        else:
            start, temperature, price = (settings[(self.goes + turn) % len(settings)] for settings in parameters)
        return start, temperature, price

    def _go(self, begin: Contender | None, settings: Sequence[Setting], moves: int) -> Callable[[], WentTo]:
        self.goes += 1
        _, temperature, price = (setting.value for setting in settings)
        cooling = self.local.cool(self.goes * _SEEDS, moves, temperature, price)
        descend = partial(
            self.local.descend, cooling=cooling, clock=self.asked.limits.clock, exactly=bool(self.goes % 2)
        )
        afresh = partial(self.afresh.order, self.goes)
        call = partial(descend, begin.steps) if begin is not None else lambda: descend(afresh())
        return self.asked.best.ledger.counted(self.name, call)
