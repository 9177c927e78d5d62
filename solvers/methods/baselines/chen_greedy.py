"""`chen-greedy`: checkpoint whenever a segment of a chain has grown past b bytes, and search over b. Chen et al.,
Training Deep Nets with Sublinear Memory Cost (arXiv 1604.06174), Algorithm 3.

Symbols: `limit` is b, `held` is temp, `candidates` is C. Costs are not looked at. The paper searches b around the best
guess sqrt(xy); here all of b's range is swept, for its best setting depends on the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.baselines.forward import forward_nodes, node_bytes
from solvers.methods.baselines.links import links
from solvers.methods.baselines.segments import order_of
from solvers.methods.baselines.sweep import over_knob
from solvers.notes import Note, SolverNote
from solvers.orders.best import refuse
from solvers.problem import Limits, Problem, Result

SETTINGS = 256


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    chain = links(problem)
    if chain is None:
        return refuse(problem, budget, limits, Note(SolverNote.ONLY_CHAINS))
    return solve_among(problem, budget, limits, [link[-1] for link in chain])


def solve_among(problem: Problem, budget: int, limits: Limits, candidates: Sequence[int]) -> Result:
    """The cheapest schedule that Algorithm 3 makes with these candidates, over all b."""
    sizes = [(node, node_bytes(problem, node)) for node in forward_nodes(problem)]
    allowed = frozenset(candidates)
    return over_knob(
        problem,
        budget,
        limits,
        _settings([size for _, size in sizes]),
        lambda limit: order_of(problem, greedily(sizes, allowed, limit)),
    )


def greedily(sizes: Sequence[tuple[int, int]], candidates: frozenset[int], limit: int) -> set[int]:
    """Algorithm 3: keep the candidate at which more than `limit` bytes have come together since the last one."""
    checkpoints: set[int] = set()
    held = 0
    for node, size in sizes:
        held += size
        if node in candidates and held > limit:
            checkpoints.add(node)
            held = 0
    return checkpoints


def _settings(sizes: Sequence[int]) -> list[int]:
    """Values of b from "checkpoint everything" to "checkpoint nothing", evenly spread in the logarithm."""
    total, least = sum(sizes), max(1, min((size for size in sizes if size), default=1))
    steps = range(SETTINGS + 1)
    return sorted({0, *(round(least * (max(total, least) / least) ** (step / SETTINGS)) for step in steps), total})
