"""`ap-sqrt`: Chen's choice of checkpoints among the articulation points of the forward graph. Checkmate (arXiv
1910.02653), section 5.1.1.

An op without which the undirected forward graph falls apart is a good checkpoint: nothing after it needs anything from
before it. On a chain every op is one, and this is `chen-sqrt` exactly.
"""

from __future__ import annotations

from solvers.methods.baselines.chen_sqrt import solve_among
from solvers.methods.baselines.forward import articulation_points
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    return solve_among(problem, budget, limits, articulation_points(problem))
