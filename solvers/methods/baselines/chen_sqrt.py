"""`chen-sqrt`: checkpoint every sqrt(n)-th layer of a chain. Chen et al., Training Deep Nets with Sublinear Memory Cost
(arXiv 1604.06174), section 4.1.

Symbols: n is the number of layers (links of the chain); k = floor(sqrt(n)) of them make a segment. Costs and sizes are
not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from solvers.methods.baselines.links import links
from solvers.methods.baselines.segments import order_of
from solvers.methods.baselines.sweep import cheapest_of
from solvers.notes import Note, SolverNote
from solvers.orders.best import refuse
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    chain = links(problem)
    if chain is None:
        return refuse(problem, budget, limits, Note(SolverNote.ONLY_CHAINS))
    return solve_among(problem, budget, limits, [link[-1] for link in chain])


def solve_among(problem: Problem, budget: int, limits: Limits, candidates: Sequence[int]) -> Result:
    """The one schedule that checkpoints every k-th candidate."""
    return cheapest_of(problem, budget, limits, iter([order_of(problem, every_root(candidates))]))


def every_root(candidates: Sequence[int]) -> set[int]:
    step = max(1, math.isqrt(len(candidates)))
    return set(candidates[step - 1 :: step])
