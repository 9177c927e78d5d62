"""`linearized-greedy`: Chen's choice of checkpoints as if the forward ops, in their order, were a chain. Checkmate
(arXiv 1910.02653), section 5.1.2 and appendix B.

The chain is a pretence that only places the checkpoints: what must be computed again follows from the true graph. On a
chain this is `chen-greedy` exactly.
"""

from __future__ import annotations

from solvers.methods.baselines.chen_greedy import solve_among
from solvers.methods.baselines.forward import forward_nodes
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    return solve_among(problem, budget, limits, forward_nodes(problem))
