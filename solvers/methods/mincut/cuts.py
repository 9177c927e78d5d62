"""The sets of saved values worth trying: the paper's cut, PyTorch's aggressive one, and trade-offs of bytes for time.

Invariant: nothing here knows the budget, so that a larger budget only ever has more to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.methods.mincut.cut import cut
from solvers.methods.mincut.joint import AGGRESSIVE, DEFAULT, Bans
from solvers.methods.mincut.tradeoff import Tradeoff
from solvers.methods.mincut.training import joint_of
from solvers.orders.arrays import Arrays
from solvers.orders.measure import memory_of
from solvers.problem import Problem

Saved = frozenset[int]
FEWEST, MOST, NODES_CUT = 2, 8, 6000  # hulls: a number that keeps a large graph within seconds


def paper_cut(problem: Problem, options: Bans = DEFAULT) -> Saved:
    """Algorithms 1 and 2 of Yu and He."""
    joint, vertex_of = joint_of(problem)
    value_of = {vertex: value for value, vertex in enumerate(vertex_of)}
    return frozenset(value_of[vertex] for vertex in cut(joint, options).saved if vertex in value_of)


def cuts(problem: Problem, arrays: Arrays, hulls: int = MOST) -> Iterator[Saved]:
    """The paper's first; then the lower hulls of bytes and time, for several notions of which bytes count."""
    yield paper_cut(problem)
    yield paper_cut(problem, AGGRESSIVE)
    memory = memory_of(arrays, np.arange(len(problem.nodes)))
    parts = max(FEWEST, min(hulls, NODES_CUT // len(problem.nodes)))
    yield from Tradeoff(problem).hull()
    for part in range(1, parts):
        yield from Tradeoff(problem, _waiting_above(problem, memory.tolist(), part / parts)).hull()


def _waiting_above(problem: Problem, memory: list[int], share: float) -> list[int]:
    """Sizes by value; zero for a value that only waits where memory stays below a share of its peak."""
    floor = share * max(memory)
    begins = next(i for i, node in enumerate(problem.nodes) if node.backward)
    writer, readers = problem.writers(), problem.readers()
    sizes = []
    for value, size in enumerate(problem.sizes):
        uses = readers[value]
        last = max((use for use in uses if use < begins), default=writer[value])
        first = min((use for use in uses if use >= begins), default=last)
        sizes.append(size if max(memory[last + 1 : first], default=0) > floor else 0)
    return sizes
