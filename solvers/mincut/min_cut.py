"""The fusion-aware minimum cut as a method: what to keep between forward and backward.

Yu and He, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware" (MLSys 2023). With a budget,
the cheapest of the cuts that fit it. Invariant: the cuts tried do not depend on the budget, so that more budget never
gives a worse plan, and `simulate` has the last word on which of them fit.
"""

from __future__ import annotations

from solvers.mincut.cut import cut
from solvers.mincut.joint import AGGRESSIVE, DEFAULT
from solvers.mincut.tradeoff import Tradeoff
from solvers.mincut.training import joint_of, order_of
from solvers.plan import lower
from solvers.problem import Limits, Problem, Result, Status
from solvers.simulate import simulate


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    if not any(node.backward for node in problem.nodes):
        note = "no op is marked as backward, so there is nothing to cut between"
        return Result(Status.UNKNOWN, tuple(range(len(problem.nodes))), notes=(note,))
    orders = dict.fromkeys(order_of(problem, saved) for saved in _cuts(problem))
    tried = []
    for order in orders:
        outcome = simulate(problem, lower(problem, order))
        tried.append((outcome.peak > budget, outcome.cost, outcome.peak, order))
    over, _, peak, order = min(tried)
    if not over:
        return Result(Status.FEASIBLE, order)
    *_, peak, order = min(tried, key=lambda one: one[2])
    return Result(Status.UNKNOWN, order, notes=(f"the smallest of {len(tried)} cuts needs {peak} bytes",))


def _cuts(problem: Problem) -> list[frozenset[int]]:
    """The paper's cut, PyTorch's aggressive one, and the trade-off between bytes kept and time."""
    joint, vertex_of = joint_of(problem)
    value_of = {vertex: value for value, vertex in enumerate(vertex_of)}
    found = []
    for options in (DEFAULT, AGGRESSIVE):
        found.append(frozenset(value_of[vertex] for vertex in cut(joint, options).saved if vertex in value_of))
    return found + Tradeoff(problem).hull()
