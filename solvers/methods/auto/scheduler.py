"""Gives work to operators by what they gain: each has a share in any case, and the rest goes to those that gain most.

Whose next step would end first, if each worked all the time at its share, is next (weighted fair queueing: A. Demers et
al., "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM 1989, section 2.2). So a long step waits until
short ones have had their turns.

Invariant: work and gains are counted, never timed, so that without a time-out the same steps come in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, wait
from functools import partial

from solvers.clock import Work
from solvers.methods.auto.annealing import Annealing
from solvers.methods.auto.operator import Offer, Operator
from solvers.methods.auto.question import Earnings, SearchQuestion

_LOOK_SECONDS = 0.01  # between two looks at what a step has done, which decide nothing


class Account(Earnings):
    """What one operator has had."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self.operator = operator
        self.served = 0.0  # work by its share, as in fair queueing
        self.waiting = False

    def is_ready(self, now: float) -> bool:
        """Whoever was not ready gets nothing for that time."""
        before, self.waiting = self.waiting, self.operator.ready()
        if self.waiting and not before:
            self.served = max(self.served, now)
        return self.waiting


class Scheduler:
    """`annealing` has its own turns, and goes on beside the steps of others."""

    def __init__(self, asked: SearchQuestion, operators: Sequence[Operator], annealing: Annealing) -> None:
        self.asked, self.annealing = asked, annealing
        self.accounts = [Account(operator) for operator in (annealing, *operators)]
        self.now = 0.0  # what whoever was served last had when its step began

    def step(self) -> bool:
        """One step; False if nobody is ready."""
        ready = [account for account in self.accounts if account.is_ready(self.now)]
        if not ready:
            return False
        rates = sum(account.rate() for account in ready)
        spare = max(0.0, 1 - sum(account.operator.share for account in ready))

        def share(account: Account) -> float:
            return account.operator.share + (spare * account.rate() / rates if rates else 0.0)

        chosen = min(ready, key=lambda account: account.served + account.operator.work / share(account))
        self.now = max(chosen.served, self.now)
        before, part = self.asked.state(), share(chosen)
        spent, beside = self._run(chosen.operator)
        chosen.served += spent / part
        self.accounts[0].served += beside / share(self.accounts[0])
        chosen.learn(self.asked.gain_since(before), spent)
        return True

    def _run(self, operator: Operator) -> tuple[int, int]:
        """A step beside as much annealing: the work of each. Neither receives results of the other before both have
        ended, so that it does not matter which is faster."""
        asked = self.asked
        if operator is self.annealing:
            return max(1, self.annealing.lot()), 0
        limits = asked.aside(operator.most)
        step = asked.best.ledger.counted(operator.name, partial(operator.begin(), limits))
        going = asked.workers.begin(step)
        counts = operator.limited or asked.limits.clock.most is None  # else nothing would be left for the others
        filled = self._fill(going, limits.clock.work, operator.work) if counts else 0
        offers = going.result()
        entries = [asked.pool.offer(*offer) for offer in offers]
        operator.work = max(1, limits.clock.work.spent)
        if operator.limited:
            asked.limits.clock.spend(moves=operator.work)
        spent = operator.work
        operator.end(entries)
        return spent, filled

    def _fill(self, going: Future[Sequence[Offer]], work: Work, expected: int) -> int:
        """Anneal beside a step for as much work as it takes, which is known when it ends; returns how much was done.
        It is taken to last for half of what is expected. No lot takes more than half of what is left of it, as far as
        is known, or of what it has taken; the shortest lot waits until the step takes more than that as well."""
        filled, shortest = 0, self.annealing.shortest
        while self.asked.pool.entries and not self.asked.done():
            most = max(expected - filled, filled) // 2
            surely = filled if most >= shortest else filled + shortest
            if not (2 * surely < expected or takes_more(going, work, surely)):
                break
            filled += self.annealing.lot(max(most, shortest))
        return filled


def takes_more(going: Future[Sequence[Offer]], work: Work, than: int) -> bool:
    """Whether a step takes more work than that: waits until it is known."""
    while not going.done() and work.known <= than:
        wait([going], _LOOK_SECONDS)
    return work.known > than
