"""`evict`: one walk that evicts when there is no room and recomputes what is missing, in the manner of Dynamic Tensor
Rematerialization (Kirisame et al., arXiv 2006.09616), but with the future known.

Symbols: a value is evicted by least h = cost^a / (size^b * staleness^c), where cost is the paper's e-neighbourhood cost
and staleness, which looks back, is the distance to the next use, which looks ahead. All of a, b, c are swept.
"""

from __future__ import annotations

from collections.abc import Iterator

from solvers.baselines.sweep import cheapest_of
from solvers.exact.evict import Evictor
from solvers.exact.milp import TASTES
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    return cheapest_of(problem, budget, limits, _orders(problem, budget, limits.seed))


def _orders(problem: Problem, budget: int, seed: int) -> Iterator[list[int]]:
    yield list(range(len(problem.nodes)))
    evictor = Evictor(problem)
    for taste in TASTES:
        order = evictor.run(budget, taste, seed)
        if len(order):  # it went round in circles otherwise
            yield order.tolist()
