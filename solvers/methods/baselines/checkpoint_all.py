"""Keep everything: each node once, in the order given. The baseline all overheads are measured against."""

from __future__ import annotations

from solvers.plan import lower
from solvers.problem import Limits, Problem, Result, Status
from solvers.simulate import simulate


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    order = tuple(range(len(problem.nodes)))
    fits = simulate(problem, lower(problem, order)).peak <= budget
    bound = sum(node.cost for node in problem.nodes)
    return Result(Status.OPTIMAL if fits else Status.UNKNOWN, order, bound)
