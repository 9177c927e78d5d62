"""Gives work to operators by what they gain: each has a share in any case, and the rest goes to those that gain most.

Whose next step would end first, if each worked all the time at its share, is next (weighted fair queueing: A. Demers et
al., "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM 1989, section 2.2). So a long step waits until
short ones have had their turns.

Invariant: work and gains are counted, never timed, so that without a time-out the same steps come in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial

from solvers.clock import Work
from solvers.methods.auto.annealing import Annealing
from solvers.methods.auto.gains import Gains
from solvers.methods.auto.operator import Offer, Operator
from solvers.methods.auto.question import SearchQuestion

_LOOK_SECONDS = 0.01  # between two looks at what a step has done, which decide nothing


class Account:
    """What one operator has had."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.served = 0.0  # work by its share, as in fair queueing
        self.gains = Gains()
        self.waiting = False

    def is_ready(self, now: float) -> bool:
        """Whoever was not ready gets nothing for that time."""
        before, self.waiting = self.waiting, self.operator.ready()
        if self.waiting and not before:
            self.served = max(self.served, now)
        return self.waiting


class Scheduler:
    """`annealing` has its own turns, and goes on beside the steps of others; so does whoever `goes_beside`."""

    def __init__(self, asked: SearchQuestion, operators: Sequence[Operator], annealing: Annealing) -> None:
        self.asked, self.annealing = asked, annealing
        self.accounts = [Account(operator) for operator in (annealing, *operators)]
        self.now = 0.0  # what whoever was served last had when its step began
        self.spare, self.rates = 0.0, 0.0  # shares that gains decide, and the gains of whoever is ready

    def step(self) -> bool:
        """One step; False if nobody is ready."""
        ready = [account for account in self.accounts if account.is_ready(self.now)]
        if not ready:
            return False
        self.rates = sum(account.gains.rate for account in ready)
        self.spare = max(0.0, 1 - sum(account.operator.share for account in ready))
        chosen = min(ready, key=self._end)
        self.now = max(chosen.served, self.now)
        self._serve(chosen, self._lot if chosen.operator is self.annealing else partial(self._run, chosen))
        return True

    def _share(self, account: Account) -> float:
        return account.operator.share + (self.spare * account.gains.rate / self.rates if self.rates else 0.0)

    def _end(self, account: Account) -> float:
        """When its next step would end, if each worked all the time at its share."""
        return account.served + account.operator.work / self._share(account)

    def _serve(self, account: Account, step: Callable[[], int]) -> int:
        """The step, which says what work it took."""
        before, part = self.asked.state(), self._share(account)
        spent = step()
        account.served += spent / part
        account.gains.learn(self.asked.gain_since(before), spent)
        return spent

    def _lot(self) -> int:
        return max(1, self.annealing.lot())

    def _run(self, account: Account, alone: bool = False) -> int:
        """A step beside as much work of others, if it is not to be alone. Neither receives results of the other before
        both have ended, so that it does not matter which is faster."""
        asked, operator = self.asked, account.operator
        limits = asked.aside(operator.most)
        step = asked.best.ledger.counted(operator.name, partial(operator.begin(), limits))
        going = asked.workers.begin(step)
        # where work is limited, nothing would be left for others beside what is not
        if not alone and (operator.limited or asked.limits.clock.most is None):
            self._fill(account, going, limits.clock.work)
        entries = [asked.pool.offer(*offer) for offer in going.result()]
        operator.work = max(1, limits.clock.work.spent)
        if operator.limited:
            asked.limits.clock.spend(moves=operator.work)
        operator.end(entries)
        return operator.work

    def _fill(self, account: Account, going: Future[Sequence[Offer]], work: Work) -> None:
        """Work beside a step for as much as that takes, which is known when it ends. It is taken to last for half of
        what is expected. No lot of annealing takes more than half of what is left of it, as far as is known, or of what
        it has taken; the shortest lot waits until the step takes more than that as well."""
        expected, filled, shortest = account.operator.work, 0, self.annealing.shortest
        annealing, *others = self.accounts
        besides = [other for other in others if other.operator.goes_beside and other is not account]
        while self.asked.pool.entries and not self.asked.done():
            most = max(expected - filled, filled) // 2
            surely = filled if most >= shortest else filled + shortest
            if not (2 * surely < expected or takes_more(going, work, surely)):
                break
            chosen = min((annealing, *(other for other in besides if other.is_ready(self.now))), key=self._end)
            if chosen is annealing:
                spent = self.annealing.lot(max(most, shortest))
                annealing.served += spent / self._share(annealing)
            else:
                spent = self._serve(chosen, partial(self._run, chosen, alone=True))
            filled += spent


def takes_more(going: Future[Sequence[Offer]], work: Work, than: int) -> bool:
    """Whether a step takes more work than that: waits until it is known."""
    while not going.done() and work.known <= than:
        wait([going], _LOOK_SECONDS)
    return work.known > than
