"""The least cost, and the least peak, of tiny problems: for a given order of first computes, and for any order.

Shortest paths over what is in memory. A state says which nodes have run, which output nodes have run for the last time,
which values are held, which of them share a block of memory, and how many bytes are stuck in copies that nobody read.
Whatever the end of a copy depends on lies in the future: the search guesses it, and a guess that does not come true
leads nowhere. (A value that is held is one that will be read before it is made again, or an output's last copy.)

Invariant: shares no code with any solver, nor with `lower` and `simulate`: its word is its own reading of the
vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvers.problem import Problem
from tests.oracle._search import search
from tests.oracle.tables import tables_of

Kernels = Sequence[Sequence[int]]
MOST = 15  # values, and nodes
NO_LIMIT = 1 << 61


@dataclass(frozen=True, slots=True)
class Best:
    """What was sought, and an order that has it."""

    length: int
    order: tuple[int, ...]


def optimum(problem: Problem, budget: int, any_order: bool, kernels: Kernels | None = None) -> int | None:
    """The least cost of any order of computes, repeats allowed, that fits; None if there is none.

    Without `any_order`, first computes come as the nodes (or the `kernels`, whose nodes run one right after the other)
    stand.
    """
    found = cheapest(problem, budget, any_order, kernels)
    return None if found is None else found.length


def least_peak(problem: Problem, any_order: bool, kernels: Kernels | None = None) -> int:
    return lowest(problem, any_order, kernels).length


def cheapest(problem: Problem, budget: int, any_order: bool, kernels: Kernels | None = None) -> Best | None:
    return _best(problem, budget, any_order, kernels, by_peak=False)


def lowest(problem: Problem, any_order: bool, kernels: Kernels | None = None) -> Best:
    found = _best(problem, NO_LIMIT, any_order, kernels, by_peak=True)
    assert found is not None
    return found


def _best(problem: Problem, budget: int, any_order: bool, kernels: Kernels | None, by_peak: bool) -> Best | None:
    assert len(problem.sizes) <= MOST
    assert len(problem.nodes) <= MOST
    if problem.resident > budget:
        return None
    length, order = search(tables_of(problem, kernels), budget, not any_order, by_peak)
    return None if length < 0 else Best(int(length), tuple(map(int, order)))
