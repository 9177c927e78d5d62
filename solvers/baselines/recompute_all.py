"""`recompute-all`: keep nothing of the forward pass; each backward op has all that it reads computed from the start.

About the least memory that a step can do with, at a cost quadratic in its depth: the far end of the trade, named
"checkpoint nothing" or "checkpoint last node" in comparisons. On deep graphs the schedule itself becomes too long to
be of use, and is not made.
"""

from __future__ import annotations

from solvers.baselines.from_checkpoints import cheapest_order, nothing_kept
from solvers.baselines.sweep import cheapest_of
from solvers.problem import Limits, Problem, Result

LONGEST = 200_000  # computes


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    kept = nothing_kept(problem)
    users = problem.readers()
    for index, node in enumerate(problem.nodes):
        for value in node.writes:
            if node.backward:
                kept[index + 1 :, value] = True
            else:  # the forward pass itself runs once
                kept[
                    index + 1 : 1 + max((u for u in users[value] if not problem.nodes[u].backward), default=0), value
                ] = True
    order = cheapest_order(problem, kept)
    return cheapest_of(problem, budget, limits, iter([order]))
