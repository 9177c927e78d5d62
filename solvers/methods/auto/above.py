"""Orders found with more room, then mended to fit: where recomputation is dear, they lead further than orders that fit.

Near the least memory the search seldom gets from one order that fits to another: much has to change at once. With a
little more room it moves freely, and what is over the budget in the end stands at few places.

Invariant: what is yielded needs no more of the budget than the search with more room left, and may still not fit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.methods.auto.local import LocalSearch
from solvers.orders.arrays import Ints
from solvers.orders.best import Best
from solvers.orders.evict import RULES, Evictor
from solvers.pebbles.copies import Copies
from solvers.pebbles.mending import Mending
from solvers.problem import Problem

_PARTS = (1.05, 1.08, 1.03)  # of the budget
_STATE_MOVES = 10  # moves of a go for each state of the search that mends what it comes to


def come_from_above(problem: Problem, best: Best, copies: Copies, moves: int, walks: int) -> Iterator[Ints]:
    """An order from each larger budget. `moves`: of each go; `walks`: tried as its start. `best` is told of nothing."""
    limits = best.limits
    for number, part in enumerate(_PARTS):
        if limits.clock.over():
            return
        budget = int(best.budget * part)
        order = LocalSearch(problem, budget, limits.seed).go(
            _walk(problem, Best(problem, budget, limits.silent()), walks), number, moves, limits.clock
        )
        limits.clock.spend(moves)
        yield Mending(copies, best, moves // _STATE_MOVES).run(order)


def _walk(problem: Problem, larger: Best, walks: int) -> Ints:
    """The best of some eviction walks."""
    evictor = Evictor(problem, larger.limits.clock)
    for rule in RULES[:walks]:
        larger.offer(evictor.run(larger.budget, rule, larger.limits.seed))
    found = larger.fitting or larger.leanest
    return np.arange(len(problem.nodes)) if found is None else found.order
