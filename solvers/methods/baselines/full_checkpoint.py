"""`full-checkpoint`: nothing of the forward pass is kept; the whole of it runs once more when the backward pass begins.

The far end that Yu and He compare with ("Transcending runtime-memory tradeoffs in checkpointing by being fusion aware",
MLSys 2023): one segment, one more forward pass, and the backward pass's peak as it was.
"""

from __future__ import annotations

from solvers.methods.baselines.from_checkpoints import cheapest_order
from solvers.methods.baselines.segments import kept_between
from solvers.methods.baselines.sweep import cheapest_of
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    kept = kept_between(problem, (), crossing=False, last_too=True)
    return cheapest_of(problem, budget, limits, iter([cheapest_order(problem, kept)]))
