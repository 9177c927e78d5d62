"""What an operator is: one way to better orders or the bound, which the scheduler gives work.

Invariant: a step changes nothing that others see before it has ended, so it may run in any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.arrays import Ints
from solvers.problem import Limits


class Offer(NamedTuple):
    """An order for the pool. `origin`: that of what it was made from; None if it is one itself."""

    order: Ints
    by: str
    origin: int | None = None


Step = Callable[[Limits], Sequence[Offer]]  # the limits have a counter of their own, for the work of the step


class Operator:
    """It keeps its state: a step goes on where the last one ended. `share`: of the work in any case, while it is ready.
    `work`: what its next step takes, in moves, as far as is known. `most`: what it may take, if that is limited.
    `limited`: whether its work is part of that to which a search is limited. `goes_beside`: whether its steps may come
    beside a longer one of another."""

    name: str
    share: float
    limited, goes_beside = True, False
    most: int | None = None

    def __init__(self, asked: SearchQuestion, work: int) -> None:
        self.asked, self.work = asked, work

    def ready(self) -> bool:
        raise NotImplementedError

    def begin(self) -> Step:
        """The next step."""
        raise NotImplementedError

    def end(self, entries: Sequence[Contender | None]) -> None:
        """Called when the pool has what the step offered, as these entries, and the step's work is counted in
        `work`."""
