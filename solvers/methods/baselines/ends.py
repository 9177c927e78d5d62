"""The ends of the trade between memory and time, which everything else lies between.

Invariant: neither costs nor sizes nor the budget are looked at.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice

from solvers.methods.baselines.forward import forward_nodes
from solvers.methods.baselines.from_checkpoints import Kept, cheapest_order, nothing_kept, stages
from solvers.methods.baselines.segments import kept_between
from solvers.methods.baselines.sweep import only
from solvers.notes import Note, SolverNote
from solvers.plan import lower
from solvers.problem import Limits, Problem, Result, Status
from solvers.simulate import simulate

LONGEST = 60_000  # in computes


def checkpoint_all(problem: Problem, budget: int, limits: Limits) -> Result:
    """Keep everything: each node once, in the order given. The baseline all overheads are measured against."""
    order = tuple(range(len(problem.nodes)))
    fits = simulate(problem, lower(problem, order)).peak <= budget
    bound = sum(node.cost for node in problem.nodes)
    return Result(Status.OPTIMAL if fits else Status.UNKNOWN, order, bound)


def full_checkpoint(problem: Problem, budget: int, limits: Limits) -> Result:
    """Keep nothing of the forward pass, the whole of which runs once more when the backward pass begins.

    The far end that Yu and He compare with ("Transcending runtime-memory tradeoffs in checkpointing by being fusion
    aware", MLSys 2023): one segment, one more forward pass, and the backward pass's peak as it was.
    """
    kept = kept_between(problem, (), crossing=False, last_too=True)
    return only(problem, budget, limits, cheapest_order(problem, kept))


def recompute_all(problem: Problem, budget: int, limits: Limits) -> Result:
    """Keep nothing of the forward pass; each backward op has all that it reads computed from the start.

    About the least memory that a step can do with, at a cost quadratic in its depth. On deep graphs such a schedule is
    too long to be of use; there, as few evenly spaced ops are kept as make it short enough.
    """
    nodes = forward_nodes(problem)
    period = len(nodes) + 1
    order = _order(problem, period)
    while len(order) > max(LONGEST, len(problem.nodes)) and period > 1:
        period = (period + 1) // 2
        order = _order(problem, period)
    result = only(problem, budget, limits, order)
    if period > len(nodes):
        return result
    return replace(result, notes=(*result.notes, Note(SolverNote.SOME_KEPT, (period,))))


def _order(problem: Problem, period: int) -> list[int]:
    """The schedule, or as much of it as shows that it is too long."""
    computes = chain.from_iterable(stages(problem, _kept(problem, period)))
    return list(islice(computes, max(LONGEST, len(problem.nodes)) + 1))


def _kept(problem: Problem, period: int) -> Kept:
    """The forward pass itself runs once, and backward ops run once."""
    kept = nothing_kept(problem)
    users = problem.readers()
    forward = forward_nodes(problem)
    inside, every = set(forward), set(forward[period - 1 :: period])
    for index, node in enumerate(problem.nodes):
        for value in node.writes:
            last = max((user for user in users[value] if user in inside), default=index)
            kept[index + 1 : last + 1, value] = True
            if index in every or index not in inside:
                kept[index + 1 :, value] = True
    return kept
