"""The cheapest recomputation for given retention: Checkmate (arXiv 1910.02653), section 5.1.1.

Symbols: row t of `kept` is the paper's S_t, by value: what is in memory when stage t begins; stage t first computes
node t. What a row promises and stage t - 1 did not hold is computed in stage t - 1, and what a compute reads and its
stage does not hold is computed before it: the paper's "traversal for each row of R", O(|V||E|) in all.

Invariant: the order is legal whatever `kept` says, its first computes stand in the problem's order, and a node that
may run only once does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from solvers.problem import Problem

Kept = NDArray[np.bool_]  # one row for each stage, one column for each value


def nothing_kept(problem: Problem) -> Kept:
    return np.zeros((len(problem.nodes), len(problem.sizes)), dtype=np.bool_)


def cheapest_order(problem: Problem, kept: Kept) -> list[int]:
    """The computes of each stage in the problem's order, one stage after the other."""
    return [op for computes in stages(problem, kept) for op in computes]


def stages(problem: Problem, kept: Kept) -> Iterator[list[int]]:
    """The computes of each stage: its row of R."""
    reads = [node.reads for node in problem.nodes]
    writer = problem.writers()
    kept = _with_promises(problem, writer, kept)
    for stage in range(len(problem.nodes)):
        wanted = {stage}
        if stage + 1 < len(problem.nodes):
            fresh = np.flatnonzero(kept[stage + 1] > kept[stage])
            wanted.update(writer[value] for value in fresh.tolist() if writer[value] <= stage)
        yield sorted(_closure(reads, writer, kept[stage], wanted))


def _with_promises(problem: Problem, writer: list[int], kept: Kept) -> Kept:
    """The rows of S, with outputs and values that can be made only once held from the first time on."""
    forever = set(problem.outputs)
    forever.update(value for node in problem.nodes if node.once for value in node.writes)
    promised = kept.copy()
    for value in forever:
        promised[writer[value] + 1 :, value] = True
    return promised


def _closure(reads: list[tuple[int, ...]], writer: list[int], held: NDArray[np.bool_], wanted: set[int]) -> set[int]:
    """`wanted`, and all that must run before it because it is not held."""
    if len(wanted) == 1 and held[list(reads[min(wanted)])].all():
        return wanted
    row = held.tolist() if len(wanted) > 8 else held
    waiting: Iterable[int] = list(wanted)
    found = set(wanted)
    while waiting:
        missing = {writer[value] for node in waiting for value in reads[node] if not row[value]}
        waiting = missing - found
        found |= waiting
    return found
