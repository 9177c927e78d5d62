"""`evict`: one walk that evicts when there is no room and recomputes what is missing, in the manner of Dynamic Tensor
Rematerialization (Kirisame et al., arXiv 2006.09616), but with the future known.

Symbols: a value is evicted by least h = cost^a / (size^b * staleness^c), where cost is the paper's e-neighbourhood cost
and staleness, which looks back, is the distance to the next use, which looks ahead. All of a, b, c are swept.
"""

from __future__ import annotations

from solvers.orders.best import GIVEN, Best
from solvers.orders.evict import Evictor, some_rules
from solvers.problem import Limits, Problem, Result

FEWEST, NODES_WALKED = 9, 40_000  # settings tried at least; and nodes walked, which keeps a sweep within a second or so


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    best = Best(problem, budget, limits)
    best.offer(range(len(problem.nodes)), GIVEN)
    evictor = Evictor(problem)
    for rule in some_rules(len(problem.nodes), NODES_WALKED, FEWEST):
        if best.over():
            break
        order = evictor.run(budget, rule, limits.seed, clock=limits.clock)
        best.offer(order, "walks")  # a walk may not reach the end
    return best.result()
