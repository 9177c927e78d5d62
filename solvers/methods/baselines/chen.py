"""Checkpoints of Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv 1604.06174), among given candidates.

- `sqrt` (section 4.1) keeps every k-th candidate, k = floor(sqrt(n)) of n candidates. It looks at no sizes.
- `greedy` (Algorithm 3) keeps the candidate at which more than b bytes have come together since the last one. Symbols:
  `limit` is b, `held` is temp, `candidates` is C. The paper searches b around the best guess sqrt(xy); here all of b's
  range is swept, for its best setting depends on the budget.

Candidates are the layers of a chain, as in the paper (`chen-...`), or what Checkmate makes of that for any graph (arXiv
1910.02653). An op without which the undirected forward graph falls apart is a good checkpoint: nothing after it needs
anything from before it (`ap-...`, section 5.1.1). Or the forward ops in their order pass for a chain (`linearized-...`,
section 5.1.2 and appendix B), and what must be computed again follows from the true graph. On a chain all three agree.

Invariant: costs are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from solvers.methods.baselines.forward import articulation_points, forward_nodes, node_bytes
from solvers.methods.baselines.links import links
from solvers.methods.baselines.segments import order_of
from solvers.methods.baselines.sweep import only, over_knob
from solvers.notes import Note, SolverNote
from solvers.orders.best import refuse
from solvers.problem import Limits, Problem, Result

SETTINGS = 256


def chen_sqrt(problem: Problem, budget: int, limits: Limits) -> Result:
    return _on_chain(problem, budget, limits, sqrt)


def ap_sqrt(problem: Problem, budget: int, limits: Limits) -> Result:
    return sqrt(problem, budget, limits, articulation_points(problem))


def linearized_sqrt(problem: Problem, budget: int, limits: Limits) -> Result:
    return sqrt(problem, budget, limits, forward_nodes(problem))


def chen_greedy(problem: Problem, budget: int, limits: Limits) -> Result:
    return _on_chain(problem, budget, limits, greedy)


def ap_greedy(problem: Problem, budget: int, limits: Limits) -> Result:
    return greedy(problem, budget, limits, articulation_points(problem))


def linearized_greedy(problem: Problem, budget: int, limits: Limits) -> Result:
    return greedy(problem, budget, limits, forward_nodes(problem))


def _on_chain(
    problem: Problem, budget: int, limits: Limits, solve: Callable[[Problem, int, Limits, Sequence[int]], Result]
) -> Result:
    chain = links(problem)
    if chain is None:
        return refuse(problem, budget, limits, Note(SolverNote.ONLY_CHAINS))
    return solve(problem, budget, limits, [link[-1] for link in chain])


def sqrt(problem: Problem, budget: int, limits: Limits, candidates: Sequence[int]) -> Result:
    return only(problem, budget, limits, order_of(problem, every_root(candidates)))


def every_root(candidates: Sequence[int]) -> set[int]:
    step = max(1, math.isqrt(len(candidates)))
    return set(candidates[step - 1 :: step])


def greedy(problem: Problem, budget: int, limits: Limits, candidates: Sequence[int]) -> Result:
    """The cheapest schedule that Algorithm 3 makes with these candidates, over all b."""
    sizes = [(node, node_bytes(problem, node)) for node in forward_nodes(problem)]
    allowed, settings = frozenset(candidates), _settings([size for _, size in sizes])
    return over_knob(
        problem, budget, limits, settings, lambda limit: order_of(problem, greedily(sizes, allowed, limit))
    )


def greedily(sizes: Sequence[tuple[int, int]], candidates: frozenset[int], limit: int) -> set[int]:
    """Algorithm 3, for one b."""
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
